//! rustls over aws-lc-rs in FIPS mode, as a side of the comparison. The words it
//! answers are in ../../internal/proto.
//!
//! Handshakes run in one thread, a step of each end in turn: there is nothing to wait
//! for, in memory and over loopback alike. What streams has a thread for each end.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, Connection, HandshakeKind, NamedGroup,
    ProtocolVersion, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
};

enum Failure {
    Unsupported(String),
    Error(String),
}

type Outcome<T> = Result<T, Failure>;

impl<E: fmt::Display> From<E> for Failure {
    fn from(e: E) -> Self {
        Failure::Error(e.to_string())
    }
}

fn unsupported<T>(why: &str) -> Outcome<T> {
    Err(Failure::Unsupported(why.to_owned()))
}

fn error<T>(why: String) -> Outcome<T> {
    Err(Failure::Error(why))
}

#[derive(Default, Clone)]
struct Spec {
    kind: String,
    version: u16,
    group: u16,
    cert: String,
    mutual: bool,
    tcp: bool,
    both: bool,
    size: usize,
    n: usize,
}

impl Spec {
    fn parse(words: &str) -> Outcome<Spec> {
        let mut s = Spec::default();
        for word in words.split_whitespace() {
            let Some((key, value)) = word.split_once('=') else {
                return error(format!("no key=value: {word}"));
            };
            match key {
                "kind" => s.kind = value.to_owned(),
                "version" => s.version = value.parse()?,
                "group" => s.group = value.parse()?,
                "cert" => s.cert = value.to_owned(),
                "mutual" => s.mutual = value == "1",
                "transport" => s.tcp = value == "tcp",
                "both" => s.both = value == "1",
                "size" => s.size = value.parse()?,
                "n" => s.n = value.parse()?,
                "conns" | "key" | "op" => {}
                _ => return error(format!("unknown word {key}")),
            }
        }
        if s.n == 0 {
            return error("n=0".to_owned());
        }
        Ok(s)
    }

    fn suite(&self) -> CipherSuite {
        match (self.version, self.cert.as_str()) {
            (0x0304, _) => CipherSuite::TLS13_AES_128_GCM_SHA256,
            (_, "rsa-2048") => CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            _ => CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        }
    }

    fn protocol(&self) -> (&'static SupportedProtocolVersion, ProtocolVersion) {
        if self.version == 0x0304 {
            (&rustls::version::TLS13, ProtocolVersion::TLSv1_3)
        } else {
            (&rustls::version::TLS12, ProtocolVersion::TLSv1_2)
        }
    }
}

// --- configs ------------------------------------------------------------------

struct Configs {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

/// The default FIPS provider, but with AES-128 before AES-256 as all other sides have
/// it, and with the group that is asked for.
fn provider(spec: &Spec) -> Outcome<CryptoProvider> {
    let mut p = default_provider();
    p.cipher_suites.sort_by_key(|s| {
        ![
            cipher_suite::TLS13_AES_128_GCM_SHA256.suite(),
            cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256.suite(),
            cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256.suite(),
        ]
        .contains(&s.suite())
    });
    let groups: &[&'static dyn SupportedKxGroup] = match spec.group {
        0x11ec => return Ok(p), // what it prefers by itself
        0x11eb => &[kx_group::SECP256R1MLKEM768, kx_group::SECP256R1],
        23 => &[kx_group::SECP256R1],
        _ => return unsupported("this group is not in the FIPS provider"),
    };
    p.kx_groups = groups.to_vec();
    Ok(p)
}

fn chain(
    dir: &Path,
    who: &str,
    kind: &str,
) -> Outcome<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let certs = CertificateDer::pem_file_iter(dir.join(format!("{who}-{kind}.pem")))?
        .collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(dir.join(format!("{who}-{kind}.key")))?;
    Ok((certs, key))
}

fn configs(spec: &Spec, dir: &Path) -> Outcome<Configs> {
    let provider = Arc::new(provider(spec)?);
    let versions = [spec.protocol().0];
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(
        dir.join(format!("ca-{}.pem", spec.cert)),
    )?)?;
    let roots = Arc::new(roots);

    let client = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)?
        .with_root_certificates(roots.clone());
    let mut client = if spec.mutual {
        let (certs, key) = chain(dir, "client", &spec.cert)?;
        client.with_client_auth_cert(certs, key)?
    } else {
        client.with_no_client_auth()
    };
    client.resumption = Resumption::disabled();

    let server =
        ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&versions)?;
    let server = if spec.mutual {
        server.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(roots, provider).build()?,
        )
    } else {
        server.with_no_client_auth()
    };
    let (certs, key) = chain(dir, "server", &spec.cert)?;
    let mut server = server.with_single_cert(certs, key)?;
    server.send_tls13_tickets = 0;
    server.session_storage = Arc::new(NoServerSessionStorage {});
    if !client.fips() || !server.fips() {
        return error("rustls says that this is not FIPS".to_owned());
    }
    Ok(Configs {
        client: Arc::new(client),
        server: Arc::new(server),
    })
}

// --- links --------------------------------------------------------------------

/// Two ends and what is between them: sockets or buffers.
struct Link {
    client: Connection,
    server: Connection,
    sockets: Option<(TcpStream, TcpStream)>,
    there: Vec<u8>,
    back: Vec<u8>,
}

fn link(spec: &Spec, c: &Configs, listener: &TcpListener) -> Outcome<Link> {
    let sockets = if spec.tcp {
        let client = TcpStream::connect(listener.local_addr()?)?;
        let (server, _) = listener.accept()?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Some((client, server))
    } else {
        None
    };
    let mut l = Link {
        client: ClientConnection::new(c.client.clone(), ServerName::try_from("localhost")?)?.into(),
        server: ServerConnection::new(c.server.clone())?.into(),
        sockets,
        there: Vec::with_capacity(8192),
        back: Vec::with_capacity(8192),
    };
    l.client.set_buffer_limit(Some(256 << 10));
    l.server.set_buffer_limit(Some(256 << 10));
    Ok(l)
}

/// One flight from an end into the other. Over loopback all of it is there at once, and
/// one read at least is due, so that no read waits.
fn carry(
    from: &mut Connection,
    to: &mut Connection,
    sockets: Option<(&mut TcpStream, &mut TcpStream)>,
    between: &mut Vec<u8>,
) -> Outcome<()> {
    if !from.wants_write() {
        return Ok(());
    }
    match sockets {
        None => {
            while from.wants_write() {
                from.write_tls(between)?;
            }
            let mut rest = &between[..];
            while !rest.is_empty() {
                to.read_tls(&mut rest)?;
                to.process_new_packets()?;
            }
            between.clear();
        }
        Some((out, inn)) => {
            let mut left = 0;
            while from.wants_write() {
                left += from.write_tls(out)?;
            }
            while left > 0 {
                left -= to.read_tls(inn)?;
                to.process_new_packets()?;
            }
        }
    }
    Ok(())
}

impl Link {
    fn step(&mut self) -> Outcome<()> {
        let Link {
            client,
            server,
            sockets,
            there,
            back,
        } = self;
        let (mut c, mut s) = match sockets {
            Some((c, s)) => (Some(c), Some(s)),
            None => (None, None),
        };
        carry(
            client,
            server,
            c.as_deref_mut().zip(s.as_deref_mut()),
            there,
        )?;
        carry(server, client, s.zip(c), back)
    }

    fn shake(&mut self, spec: &Spec) -> Outcome<()> {
        while self.client.is_handshaking()
            || self.server.is_handshaking()
            || self.client.wants_write()
            || self.server.wants_write()
        {
            self.step()?;
        }
        look(&self.client, spec, true)?;
        look(&self.server, spec, spec.mutual)
    }

    /// The client ends the connection, the server hears it.
    fn finish(&mut self) -> Outcome<()> {
        self.client.send_close_notify();
        let Link {
            client,
            server,
            sockets,
            there,
            ..
        } = self;
        match sockets {
            Some((c, s)) => {
                carry(client, server, Some((&mut *c, s)), there)?;
                c.shutdown(std::net::Shutdown::Both)?;
            }
            None => carry(client, server, None, there)?,
        }
        if server.reader().read(&mut [0u8; 1])? != 0 {
            return error("data instead of an end".to_owned());
        }
        server.send_close_notify();
        if let Some((_, s)) = sockets {
            let _ = server.write_tls(s);
        }
        Ok(())
    }
}

/// Reads the state of an end as an application would, and holds it against what the
/// case is named after.
fn look(c: &Connection, spec: &Spec, peer_has_cert: bool) -> Outcome<()> {
    let suite = c.negotiated_cipher_suite().map(|s| s.suite());
    let group = c.negotiated_key_exchange_group().map(|g| g.name());
    let certs = c.peer_certificates().map_or(0, |certs| certs.len());
    if c.protocol_version() != Some(spec.protocol().1)
        || suite != Some(spec.suite())
        || group != Some(NamedGroup::from(spec.group))
        || c.handshake_kind() != Some(HandshakeKind::Full)
        || (certs > 0) != peer_has_cert
    {
        return error(format!(
            "negotiated {:?} {:?} {:?} {:?}, {} certificates",
            c.protocol_version(),
            suite,
            group,
            c.handshake_kind(),
            certs
        ));
    }
    Ok(())
}

fn one_handshake(spec: &Spec, c: &Configs, listener: &TcpListener) -> Outcome<()> {
    let mut l = link(spec, c, listener)?;
    l.shake(spec)?;
    l.finish()
}

// --- data ---------------------------------------------------------------------

fn write_all(c: &mut Connection, socket: &mut TcpStream, mut buf: &[u8]) -> Outcome<()> {
    while !buf.is_empty() {
        let n = c.writer().write(buf)?;
        buf = &buf[n..];
        while c.wants_write() {
            c.write_tls(socket)?;
        }
    }
    Ok(())
}

/// What is there, and at least something.
fn read_some(c: &mut Connection, socket: &mut TcpStream, buf: &mut [u8]) -> Outcome<usize> {
    loop {
        match c.reader().read(buf) {
            Ok(0) => return error("the stream ended".to_owned()),
            Ok(n) => return Ok(n),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e.into()),
        }
        c.read_tls(socket)?;
        c.process_new_packets()?;
    }
}

fn read_exact(c: &mut Connection, socket: &mut TcpStream, buf: &mut [u8]) -> Outcome<()> {
    let mut got = 0;
    while got < buf.len() {
        got += read_some(c, socket, &mut buf[got..])?;
    }
    Ok(())
}

fn receive(c: &mut Connection, socket: &mut TcpStream, total: usize) -> Outcome<()> {
    let mut buf = vec![0u8; 64 << 10];
    let mut got = 0;
    while got < total {
        got += read_some(c, socket, &mut buf)?;
    }
    Ok(())
}

fn exchange(l: &mut Link, spec: &Spec, n: usize) -> Outcome<()> {
    let Link {
        client,
        server,
        sockets,
        ..
    } = l;
    let Some((cs, ss)) = sockets else {
        return unsupported("data over TCP only");
    };
    let buf = vec![0u8; spec.size];
    std::thread::scope(|threads| {
        let served = threads.spawn(|| -> Outcome<()> {
            if spec.kind != "pingpong" {
                return receive(server, ss, n * spec.size);
            }
            let mut message = vec![0u8; spec.size];
            for _ in 0..n {
                read_exact(server, ss, &mut message)?;
                write_all(server, ss, &message)?;
            }
            Ok(())
        });
        let mut message = vec![0u8; spec.size];
        for _ in 0..n {
            write_all(client, cs, &buf)?;
            if spec.kind == "pingpong" {
                read_exact(client, cs, &mut message)?;
            }
        }
        served
            .join()
            .unwrap_or_else(|_| error("a thread panicked".to_owned()))
    })
}

// --- measuring ----------------------------------------------------------------

struct Measure {
    usage: libc::rusage,
    begun: Instant,
}

fn usage() -> libc::rusage {
    // SAFETY: rusage is plain data, and getrusage fills it.
    unsafe {
        let mut u: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut u);
        u
    }
}

fn ns(a: libc::timeval, b: libc::timeval) -> i64 {
    ((a.tv_sec - b.tv_sec) * 1_000_000 + (a.tv_usec - b.tv_usec)) * 1000
}

impl Measure {
    fn begin() -> Measure {
        Measure {
            usage: usage(),
            begun: Instant::now(),
        }
    }

    fn end(self, ops: usize, bytes: usize) -> String {
        let wall = self.begun.elapsed().as_nanos();
        let (u, v) = (usage(), self.usage);
        format!(
            "ok ops={} bytes={} user_ns={} sys_ns={} wall_ns={} faults={} switches={}",
            ops,
            bytes,
            ns(u.ru_utime, v.ru_utime),
            ns(u.ru_stime, v.ru_stime),
            wall,
            u.ru_minflt - v.ru_minflt,
            u.ru_nvcsw + u.ru_nivcsw - v.ru_nvcsw - v.ru_nivcsw
        )
    }
}

fn run(spec: &Spec, dir: &Path, listener: &TcpListener) -> Outcome<String> {
    if !["handshake", "bulk", "write", "pingpong"].contains(&spec.kind.as_str()) {
        return unsupported("this side has handshake, bulk, write and pingpong");
    }
    if spec.both {
        return unsupported("a rustls connection reads and writes in one thread");
    }
    let c = configs(spec, dir)?;
    let line = if spec.kind == "handshake" {
        one_handshake(spec, &c, listener)?;
        let m = Measure::begin();
        for _ in 0..spec.n {
            one_handshake(spec, &c, listener)?;
        }
        m.end(spec.n, 0)
    } else {
        let mut l = link(spec, &c, listener)?;
        l.shake(spec)?;
        exchange(&mut l, spec, 1)?;
        let m = Measure::begin();
        exchange(&mut l, spec, spec.n)?;
        m.end(
            spec.n,
            spec.n * spec.size * if spec.kind == "pingpong" { 2 } else { 1 },
        )
    };
    Ok(format!(
        "{line} version={} group={} suite={} mutual={}",
        spec.version,
        spec.group,
        u16::from(spec.suite()),
        u8::from(spec.mutual)
    ))
}

fn hello(spec: &Spec, dir: &Path) -> Outcome<String> {
    let c = configs(spec, dir)?;
    let mut client = ClientConnection::new(c.client, ServerName::try_from("localhost")?)?;
    let mut out = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut out)?;
    }
    Ok(format!(
        "ok hello={}",
        out.iter().map(|b| format!("{b:02x}")).collect::<String>()
    ))
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let flags: HashMap<&str, &str> = args
        .chunks_exact(2)
        .map(|p| (p[0].as_str(), p[1].as_str()))
        .collect();
    let dir = PathBuf::from(flags.get("-certs").copied().unwrap_or("."));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
    println!(
        "ready library=rustls_{}",
        flags.get("-version").copied().unwrap_or("?")
    );
    for line in io::stdin().lock().lines() {
        let line = line.expect("a line");
        let (verb, words) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = Spec::parse(words).and_then(|spec| match verb {
            "hello" => hello(&spec, &dir),
            "run" => run(&spec, &dir, &listener),
            _ => error(format!("no such verb: {verb}")),
        });
        match answer {
            Ok(line) => println!("{line}"),
            Err(Failure::Unsupported(why)) => println!("unsupported {}", why.replace('\n', " ")),
            Err(Failure::Error(why)) => println!("error {}", why.replace('\n', " ")),
        }
    }
}
