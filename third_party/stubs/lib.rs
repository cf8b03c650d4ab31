// Empty on purpose: see third_party/README.md, "Why stubs".
