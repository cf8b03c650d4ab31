package s2n_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
	"github.com/s2n-go/s2n/internal/testcert"
)

// Each mistake is found by Validate, Listen and Dial alike; the text names the field and what to do.
func TestValidate(t *testing.T) {
	cert := pair(t, pki().server)
	for _, row := range []struct {
		name   string
		config *s2n.Config
		texts  []string
	}{
		{"unknown policy", &s2n.Config{Policy: "nonesuch"}, []string{`policy "nonesuch"`, "s2n.Policies lists"}},
		{"policy with a NUL", &s2n.Config{Policy: "default_fips\x00x"}, []string{`\x00`, "s2n.Policies lists"}},
		{"policy in capitals", &s2n.Config{Policy: "DEFAULT_FIPS"}, []string{"DEFAULT_FIPS", "s2n.Policies lists"}},
		{"deprecated policy", &s2n.Config{Policy: "PQ-TLS-1-0-2020-12"}, []string{"no longer allows", "PQ-TLS-1-0-2020-12"}},
		{"policy that protects nothing", &s2n.Config{Policy: "null"}, []string{`policy "null"`}},
		{"zero certificate", &s2n.Config{Certificates: []s2n.Certificate{{}}}, []string{"Certificates[0]", "X509KeyPair"}},
		{"empty RootCAs", &s2n.Config{RootCAs: s2n.NewCertPool()}, []string{"RootCAs", "empty"}},
		{"zero RootCAs", &s2n.Config{RootCAs: new(s2n.CertPool)}, []string{"RootCAs", "NewCertPool"}},
		{"empty ClientCAs", &s2n.Config{Certificates: []s2n.Certificate{cert}, ClientCAs: s2n.NewCertPool(),
			ClientAuth: tls.RequireAndVerifyClientCert}, []string{"ClientCAs", "empty"}},
		{"zero ClientCAs", &s2n.Config{Certificates: []s2n.Certificate{cert}, ClientCAs: new(s2n.CertPool),
			ClientAuth: tls.VerifyClientCertIfGiven}, []string{"ClientCAs", "NewCertPool"}},
		{"unknown ClientAuth", &s2n.Config{Certificates: []s2n.Certificate{cert}, ClientAuth: 5}, []string{"ClientAuth", "5"}},
		{"negative ClientAuth", &s2n.Config{Certificates: []s2n.Certificate{cert}, ClientAuth: -1}, []string{"ClientAuth", "-1"}},
		{"two client certificates", &s2n.Config{Certificates: []s2n.Certificate{cert, cert}, ServerName: "x"},
			[]string{"Certificates", "a client can have one", "not 2"}},
		{"empty protocol", &s2n.Config{NextProtos: []string{"h2", ""}}, []string{"NextProtos", "2 to 255"}},
		{"protocol of one byte", &s2n.Config{NextProtos: []string{"h"}}, []string{"NextProtos", "2 to 255"}},
		{"long protocol", &s2n.Config{NextProtos: []string{strings.Repeat("x", 256)}}, []string{"NextProtos", "256"}},
		{"too many protocols", &s2n.Config{NextProtos: manyProtos(258)}, []string{"NextProtos", "65533"}},
		{"protocol with a NUL", &s2n.Config{NextProtos: []string{"h2\x00"}}, []string{"NextProtos", "NUL"}},
		{"unknown RecordSizing", &s2n.Config{RecordSizing: 3}, []string{"RecordSizing", "3"}},
		{"unknown Blinding", &s2n.Config{Blinding: 2}, []string{"Blinding", "2"}},
		{"ServerName with a blank", &s2n.Config{ServerName: "a b"}, []string{"ServerName", "0x20"}},
		{"international ServerName", &s2n.Config{ServerName: "bücher.example"}, []string{"ServerName", "xn--"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			check := func(err error) {
				t.Helper()
				var e *s2n.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, s2n.KindConfig, e.Kind, err)
				for _, text := range row.texts {
					require.ErrorContains(t, err, text)
				}
				require.NotContains(t, err.Error(), "\n")
				require.Zero(t, e.Alert)
			}
			before := cshim.GetMemStats().Conns
			check(row.config.Validate())
			check(row.config.Validate()) // a failure is not kept as a success
			if len(row.config.Certificates) > 0 && row.config.ServerName == "" {
				_, err := s2n.Listen("tcp", "127.0.0.1:0", row.config)
				check(err)
			} else {
				// Found before anything is dialled: nobody listens there.
				_, err := s2n.Dial("tcp", "127.0.0.1:1", row.config)
				check(err)
			}
			require.LessOrEqual(t, cshim.GetMemStats().Conns, before) // those of other tests may end meanwhile
		})
	}
}

func manyProtos(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%0254d", i)
	}
	return list
}

func TestListenNeedsCertificate(t *testing.T) {
	for _, config := range []*s2n.Config{nil, {}} {
		_, err := s2n.Listen("tcp", "127.0.0.1:0", config)
		require.ErrorContains(t, err, "Certificates: a server needs at least one")
		a, b := tcpPair(t)
		defer a.Close()
		require.ErrorContains(t, s2n.Server(b, config).Handshake(), "Certificates: a server needs at least one")
	}
}

// The zero Config is a client's: the system's roots and the FIPS policy.
func TestZeroConfig(t *testing.T) {
	if _, err := x509.SystemCertPool(); err != nil {
		t.Skip("this machine has no system roots, which the zero Config needs: ", err)
	}
	require.NoError(t, new(s2n.Config).Validate())
}

// setAll gives every exported field a value that is not its zero.
func setAll(t *testing.T, c *s2n.Config) {
	t.Helper()
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		switch v.Field(i).Kind() {
		case reflect.String:
			v.Field(i).SetString("value")
		case reflect.Bool:
			v.Field(i).SetBool(true)
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
			v.Field(i).SetInt(2)
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			v.Field(i).SetUint(2)
		case reflect.Slice:
			v.Field(i).Set(reflect.MakeSlice(f.Type, 1, 1))
		case reflect.Pointer:
			v.Field(i).Set(reflect.New(f.Type.Elem()))
		case reflect.Func:
			v.Field(i).Set(reflect.MakeFunc(f.Type, func([]reflect.Value) []reflect.Value { panic("never called") }))
		case reflect.Struct:
			if n := v.Field(i).NumField(); n > 0 && v.Field(i).Field(0).CanSet() && v.Field(i).Field(0).CanUint() {
				v.Field(i).Field(0).SetUint(2)
				continue
			}
			t.Fatalf("Config.%s: this test cannot set a %s; teach it", f.Name, f.Type)
		case reflect.Interface:
			v.Field(i).Set(reflect.Zero(f.Type))
			t.Fatalf("Config.%s: this test cannot set a %s; teach it", f.Name, f.Type)
		default:
			t.Fatalf("Config.%s: this test cannot set a %s; teach it", f.Name, f.Type)
		}
	}
}

// A field that Clone forgets fails here.
func TestCloneCopiesEveryField(t *testing.T) {
	var c s2n.Config
	setAll(t, &c)
	d := c.Clone()
	from, to := reflect.ValueOf(&c).Elem(), reflect.ValueOf(d).Elem()
	exported := 0
	for i := range from.NumField() {
		f := from.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		exported++
		require.False(t, to.Field(i).IsZero(), "Clone forgets Config.%s", f.Name)
		if f.Type.Kind() == reflect.Func {
			require.Equal(t, from.Field(i).Pointer(), to.Field(i).Pointer(), f.Name)
			continue
		}
		require.Equal(t, from.Field(i).Interface(), to.Field(i).Interface(), f.Name)
	}
	require.GreaterOrEqual(t, exported, 11)
	require.Nil(t, (*s2n.Config)(nil).Clone())
}

// A clone of a Config in use can be changed, and the first goes on as before.
func TestCloneAfterUse(t *testing.T) {
	config := clientConfig(t)
	handshake := func(c *s2n.Config) error {
		a, b := tcpPair(t)
		clientErr, _ := handshakeBoth(s2n.Client(a, c), tls.Server(b, goServerConfig()))
		return clientErr
	}
	require.NoError(t, handshake(config))
	clone := config.Clone()
	clone.ServerName = "other.example"
	clone.Policy = s2n.DefaultPQ
	clone.RootCAs = roots(t, pki().ca)
	var host x509.HostnameError
	require.ErrorAs(t, handshake(clone), &host)
	require.NoError(t, handshake(config))

	// A change that the compiled form holds takes effect in the clone, not in the original.
	clone = config.Clone()
	clone.InsecureSkipVerify, clone.ServerName = true, "other.example"
	require.NoError(t, handshake(clone))
}

// Any number of first users compile once a role.
func TestCompileOnce(t *testing.T) {
	config := serverConfig(t)
	config.RootCAs, config.ServerName = roots(t, pki().ca), "localhost"
	require.NoError(t, config.Clone().Validate()) // what is shared by all Configs exists now
	runtime.GC()
	before := cshim.GetMemStats().Configs
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 32 {
		wg.Go(func() {
			<-start
			if err := config.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	require.LessOrEqual(t, cshim.GetMemStats().Configs-before, int64(2))
	runtime.KeepAlive(config)
}

// One Config serves both roles at once.
func TestConfigForBothRoles(t *testing.T) {
	config := serverConfig(t)
	config.RootCAs, config.ServerName = roots(t, pki().ca), "localhost"
	config.ClientAuth = tls.RequireAndVerifyClientCert
	a, b := tcpPair(t)
	client, server := s2n.Client(a, config), s2n.Server(b, config)
	clientErr, serverErr := handshakeBoth(client, server)
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)
	require.Equal(t, pki().server.Cert.Raw, server.ConnectionState().PeerCertificates[0].Raw)
}

// The Go Config may go; its connections have in C all that they need.
func TestConfigCollectedWhileInUse(t *testing.T) {
	a, b := tcpPair(t)
	var client, server *s2n.Conn
	func() {
		client, server = s2n.Client(a, clientConfig(t)), s2n.Server(b, serverConfig(t))
		clientErr, serverErr := handshakeBoth(client, server)
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
	}()
	for range 5 {
		runtime.GC()
	}
	go echo(server)
	_, err := client.Write([]byte("still here"))
	require.NoError(t, err)
	got := make([]byte, 10)
	_, err = client.Read(got)
	require.NoError(t, err)
	require.Equal(t, "still here", string(got))
	require.NoError(t, client.Close())
}

// Every policy that is listed can be used by a client, and by a server where its rules allow the certificate.
func TestEveryPolicyCompiles(t *testing.T) {
	pool := roots(t, pki().ca)
	cert := pair(t, pki().server)
	served := 0
	for _, info := range s2n.Policies() {
		require.NoError(t, (&s2n.Config{Policy: info.Name, RootCAs: pool, ServerName: "localhost"}).Validate(), info.Name)
		if (&s2n.Config{Policy: info.Name, Certificates: []s2n.Certificate{cert}}).Validate() == nil {
			served++
		}
	}
	require.Greater(t, served, 100)
}

// The certificate is chosen by the name in the ClientHello.
func TestCertificateByName(t *testing.T) {
	other := pki().ca.Issue(testcert.Options{}, "other.example")
	wild := pki().ca.Issue(testcert.Options{}, "*.other.example")
	config := &s2n.Config{Certificates: []s2n.Certificate{pair(t, pki().server), pair(t, wild), pair(t, other)}}
	for name, want := range map[string]*x509.Certificate{
		"localhost": pki().server.Cert, "other.example": other.Cert, "www.other.example": wild.Cert,
		"OTHER.example": other.Cert, "": pki().server.Cert, "unknown.example": pki().server.Cert,
	} {
		a, b := tcpPair(t)
		peer := tls.Client(a, &tls.Config{InsecureSkipVerify: true, ServerName: name})
		clientErr, serverErr := handshakeBoth(peer, s2n.Server(b, config))
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		require.Equal(t, want.Raw, peer.ConnectionState().PeerCertificates[0].Raw, "%q", name)
	}
}

// An RSA certificate beside an ECDSA one serves who cannot verify the other.
func TestCertificateByKind(t *testing.T) {
	config := &s2n.Config{Certificates: []s2n.Certificate{pair(t, pki().server), pair(t, pki().rsa)}}
	for suite, want := range map[uint16]*x509.Certificate{
		tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:   pki().rsa.Cert,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: pki().server.Cert,
	} {
		a, b := tcpPair(t)
		peerConfig := goClientConfig()
		peerConfig.MaxVersion, peerConfig.CipherSuites = tls.VersionTLS12, []uint16{suite}
		peer := tls.Client(a, peerConfig)
		clientErr, serverErr := handshakeBoth(peer, s2n.Server(b, config))
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		require.Equal(t, want.Raw, peer.ConnectionState().PeerCertificates[0].Raw)
	}
}
