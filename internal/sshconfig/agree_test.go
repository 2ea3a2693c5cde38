package sshconfig

import (
	"log/slog"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/punnet/punnet/internal/testenv"
)

// readHere resolves q without an ssh program.
func readHere(t testing.TB, q Query) (*Settings, error) {
	t.Helper()
	if q.Log == nil {
		q.Log = slog.New(slog.DiscardHandler)
	}
	a, err := readFiles(t.Context(), q)
	if err != nil {
		return nil, err
	}
	s, err := expandSettings(a.raw, q)
	if err == nil {
		s.Sources = slices.Concat(q.sources(), a.sources)
	}
	return s, err
}

// loneAll is where a block stands of which ssh does not say where.
var loneAll = regexp.MustCompile(`^.*:\d+: (Match !?all)$`)

// comparable takes out of s what ssh and this package do not share.
func comparable(s *Settings, theirs *Settings) Settings {
	c := *s
	for _, l := range []struct{ mine, other *[]string }{
		{&c.Ciphers, &theirs.Ciphers}, {&c.MACs, &theirs.MACs}, {&c.Kex, &theirs.Kex},
		{&c.HostKeyAlgorithms, &theirs.HostKeyAlgorithms}, {&c.PubkeyAlgorithms, &theirs.PubkeyAlgorithms},
		{&c.CASignatureAlgorithms, &theirs.CASignatureAlgorithms},
	} {
		if len(*l.mine) == 0 || len(*l.other) == 0 {
			*l.mine = nil // not configured: the library's own
		}
	}
	c.Sources = nil
	for _, text := range s.Sources {
		c.Sources = append(c.Sources, loneAll.ReplaceAllString(text, "$1"))
	}
	c.Sources = distinct(c.Sources)
	return c
}

func TestWithoutAProgramTheSameIsRead(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		testenv.Missing(t, "ssh")
	}
	t.Setenv("SOCK", "/run/agent")
	t.Setenv("SSH_AUTH_SOCK", "/run/default")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"inc/a.conf":  "Host dev\n  Port 2201\n  User a\n",
		"inc/b.conf":  "Host dev\n  Port 2202\n  IdentityFile /b\nHost *\n  ConnectTimeout 3\n",
		"inc/.hidden": "Port 1\n",
		"inc/z.txt":   "Port 2\n",
		"nested":      "Include " + dir + "/inc/a.conf\nConnectTimeout 9\n",
		"with space":  "Port 2299\n",
		"id":          "", "id space": "",
		"match-all":      "Match all\n  Port 1\nMatch host dev\n  User no\n",
		"ends-in-a-host": "Host other\n  Port 1\n",
	} {
		writeDeep(t, filepath.Join(dir, name), text)
	}
	for name, c := range map[string]struct {
		host  string // dev if it is ""
		q     Query
		lines string
	}{
		"nothing":                      {lines: ""},
		"comments and empty lines":     {lines: "# a\n\n   # b\n\t\nPort 5 # c\nUser me#d\n"},
		"quoted Host":                  {lines: "Host \"dev\"\n Port 5\nHost 'dev'\n User single\n"},
		"Key=Value":                    {lines: "Host=dev\nPort=5\nUser = me\nHostName\t=\tx.example\nBindAddress=\"1.2.3.4\"\n"},
		"quoted values":                {lines: "User \"me\"\nIdentityFile \"/a b/%r\"\nIdentityFile '/c d'\nIdentityFile /e\\ f\nIdentityFile /g\"h i\"j\n"},
		"tabs and spaces":              {lines: "\tHost\tdev\t \n\t Port\t5\t\n"},
		"CRLF":                         {lines: "Host dev\r\n  Port 5\r\n  User me\r\n\r\nHost *\r\n  ProxyCommand nc %h %p\r\n"},
		"no end of line":               {lines: "Port 5\nUser me"},
		"any case of keywords":         {lines: "HOST dev\n pORT 5\n"},
		"Host knows case":              {host: "DEV", lines: "Host dev\n Port 5\nMatch host dev\n User me\n"},
		"the first value wins":         {lines: "Host dev\n Port 5\nHost d*\n Port 6\n User me\nHost *\n User you\n Compression yes\n"},
		"wildcards first":              {lines: "Host *\n Port 5\nHost dev\n Port 6\n"},
		"? is one character":           {host: "ab", lines: "Host ab?\n Port 5\nHost a?\n User two\nHost a*b*\n Compression yes\n"},
		"negated patterns":             {lines: "Host * !dev\n Port 5\nHost !other d*\n User me\nHost !other\n Compression yes\nHost !de* dev\n HashKnownHosts yes\n"},
		"several names":                {lines: "Host a b dev c\n Port 5\nHost a,dev\n User no\n"},
		"HostName %h":                  {lines: "HostName %h.Example.COM\n"},
		"HostName %%":                  {lines: "HostName a%%b\n"},
		"an address":                   {host: "10.0.0.1", lines: "Host 10.0.0.?\n Port 5\nMatch host 10.*\n User me\n"},
		"an address of version 6":      {host: "2001:db8::1", lines: "Host 2001:*\n Port 5\n"},
		"Match host sees HostName":     {lines: "Host dev\n HostName real.example\nMatch host real.example\n Port 5\nMatch host dev\n User no\n"},
		"Match originalhost":           {lines: "HostName real.example\nMatch originalhost dev,other\n Port 5\nMatch originalhost real.example\n User no\n"},
		"Match user":                   {lines: "Match user root,me\n Port 5\nHost *\n User me\nMatch user m?\n Compression yes\nMatch !user me\n HashKnownHosts yes\n"},
		"Match user by -l":             {q: Query{User: "bob"}, lines: "Match host dev user bob\n Port 5\nMatch host dev user al\n Port 6\n"},
		"Match localuser":              {lines: "Match localuser root,nobody,runner,*\n Port 5\nMatch localuser nosuch\n User no\n"},
		"Match negated":                {lines: "Match !host other\n Port 5\nMatch !host d*,x user *\n User no\nMatch host *,!dev\n Compression yes\n"},
		"Match quoted":                 {lines: "Match host \"dev\" user=\"*\"\n Port 5\nMatch Host=dev # and so on\n User me\n"},
		"Match all":                    {lines: "Host no\n Port 5\nMatch all\n Port 6\n"},
		"Match final":                  {lines: "Host dev\n HostName real.example\nMatch final host real.example\n Port 5\nHost real.example\n User late\nMatch final all\n Compression yes\n"},
		"Match !final":                 {lines: "Match !final\n Port 5\nMatch final\n User me\n"},
		"Match canonical, not asked":   {lines: "Match canonical\n Port 5\nMatch canonical all\n User me\n"},
		"Match canonical, with final":  {lines: "Match canonical\n Port 5\nMatch final\n User me\n"},
		"lists in a final pass":        {lines: "IdentityFile /a\nSendEnv A B\nSetEnv X=1\nCertificateFile /c\nMatch final\n IdentityFile /b\n SendEnv C\n SetEnv Y=2\n"},
		"canonical, no domain":         {lines: "CanonicalizeHostname yes\nMatch canonical\n Port 5\n"},
		"canonical, dots":              {host: "a.b.c", lines: "CanonicalizeHostname yes\nCanonicalDomains invalid\nMatch canonical host a.b.c\n Port 5\n"},
		"canonical, trailing dot":      {host: "dev.", lines: "CanonicalizeHostname always\nCanonicalDomains invalid\n"},
		"canonical, behind a proxy":    {lines: "CanonicalizeHostname yes\nCanonicalDomains invalid\nProxyCommand nc %h %p\n"},
		"Include":                      {lines: "Include " + dir + "/inc/a.conf\nPort 9\n"},
		"Include with a glob":          {lines: "Include " + dir + "/inc/*.conf\nPort 9\n"},
		"Include everything":           {lines: "Include " + dir + "/inc/*\nPort 9\n"},
		"Include of several":           {lines: "Include " + dir + "/inc/b.conf \"" + dir + "/with space\" " + dir + "/none\n"},
		"Include inside Host":          {lines: "Host dev\n Include " + dir + "/inc/b.conf\n User me\nHost other\n Include " + dir + "/nested\nHost *\n ConnectTimeout 4\n"},
		"Include inside Match":         {lines: "Match host other\n Include " + dir + "/inc/a.conf\nMatch host dev\n Include " + dir + "/nested\n Compression yes\n"},
		"Match in what applies":        {lines: "Host dev\n Include " + dir + "/match-all\nMatch all\n Compression yes\n"},
		"Match in what does not apply": {lines: "Host other\n Include " + dir + "/match-all\nHost *\n Compression yes\n"},
		"Include ends its block":       {lines: "Include " + dir + "/ends-in-a-host\nPort 7\n"},
		"Include of nothing":           {lines: "Include " + dir + "/none/*.conf\nPort 5\n"},
		"identity files":               {lines: "IdentityFile ~/.ssh/a\nIdentityFile %d/.ssh/%n-%h-%p-%r-%u\nIdentityFile /k/%k/%L/%i\nIdentityFile ${SOCK}/x\nIdentityFile ~/.ssh/a\nIdentitiesOnly yes\n"},
		"identity none":                {lines: "IdentityFile none\n"},
		"identities of -i":             {q: Query{IdentityFiles: []string{dir + "/id", dir + "/id space", "/missing"}}, lines: "IdentityFile /conf\n"},
		"only missing ones of -i":      {q: Query{IdentityFiles: []string{"/missing"}}},
		"certificates":                 {lines: "HostName h.example\nCertificateFile ~/%h-cert.pub\nCertificateFile \"/a b\"\n"},
		"agent none":                   {lines: "IdentityAgent none\n"},
		"agent $VAR":                   {lines: "IdentityAgent $SOCK\n"},
		"agent ${VAR}":                 {lines: "IdentityAgent ${SOCK}/%h\n"},
		"agent ~":                      {lines: "IdentityAgent \"~/a b/agent.sock\"\n"},
		"agent of the environment":     {lines: "IdentityAgent SSH_AUTH_SOCK\n"},
		"jumps":                        {lines: "ProxyJump a,me@b:2222,c\nProxyCommand no\n"},
		"jumps none":                   {lines: "Host dev\n ProxyJump none\nHost *\n ProxyJump bastion\n ProxyCommand no\n"},
		"a proxy before jumps":         {lines: "ProxyCommand nc %h %p\nProxyJump a\n"},
		"no proxy":                     {lines: "ProxyCommand none\nProxyJump a\n"},
		"proxy tokens and quotes":      {lines: "HostName h.example\nUser me\nProxyCommand sh -c 'echo \"a b\" # %h %%p' \"%n %r:%p\" $HOME ${HOME} # no comment\n"},
		"proxy with =":                 {lines: "ProxyCommand = nc %h %p\nProxyUseFdpass yes\n"},
		"control path":                 {lines: "ControlPath ~/.ssh/%C-%r@%h:%p\n"},
		"control path %k":              {lines: "HostKeyAlias key\nHostName h.example\nControlPath /x/%k-%n-%l-${SOCK}\n"},
		"control path %k, no alias":    {lines: "HostName h.example\nControlPath /x/%k\n"},
		"control path none":            {lines: "ControlPath none\n"},
		"known hosts":                  {lines: "UserKnownHostsFile \"" + dir + "/a b/%h\" ~/c " + dir + "/%%d\nGlobalKnownHostsFile " + dir + "/x ~/y\nHostKeyAlias k\nHashKnownHosts yes\nStrictHostKeyChecking accept-new\n"},
		"known hosts none":             {lines: "UserKnownHostsFile none\nGlobalKnownHostsFile none\nStrictHostKeyChecking off\n"},
		"known hosts commands":         {lines: "KnownHostsCommand /bin/echo %H %t \"a b\"\nRevokedHostKeys ~/revoked-%h\n"},
		"environment":                  {lines: "SendEnv LANG LC_*\nSendEnv FOO\nSendEnv -LC_*\nSetEnv A=\"x y\" B= C=d=e\nSetEnv D=no\n"},
		"times":                        {lines: "ConnectTimeout 1m30s\nServerAliveInterval 2m\nServerAliveCountMax 7\nConnectionAttempts 4\n"},
		"times none":                   {lines: "ConnectTimeout none\nServerAliveInterval 0\n"},
		"authentication":               {lines: "PreferredAuthentications publickey,password\nPubkeyAuthentication no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nHostbasedAuthentication yes\nGSSAPIAuthentication yes\nNumberOfPasswordPrompts 1\nBatchMode yes\nServerAliveInterval 5\nAddKeysToAgent yes\nPKCS11Provider /lib/p11.so\n"},
		"older names":                  {lines: "ChallengeResponseAuthentication no\nPubkeyAcceptedKeyTypes ssh-ed25519\nIdentityFile2 /x\n"},
		"agent's words":                {lines: "AddKeysToAgent confirm\n"},
		"addresses":                    {lines: "AddressFamily inet6\nBindAddress 127.0.0.1\nBindInterface lo\nRequiredRSASize 2048\n"},
		"algorithms":                   {lines: "Ciphers aes128-ctr,aes256-ctr\nMACs hmac-sha2-256\nKexAlgorithms curve25519-sha256\nHostKeyAlgorithms ssh-ed25519\nPubkeyAcceptedAlgorithms ssh-ed25519,rsa-sha2-512\nCASignatureAlgorithms ssh-ed25519\n"},
		"the command line wins":        {q: Query{User: "me", Port: 7, Options: []string{"HostName=o.example", "BatchMode yes", "User=other", "SetEnv=A=\"b c\""}}, lines: "Port 1\nUser x\nHostName y\nBatchMode no\nServerAliveInterval 5\n"},
		"the command line decides":     {q: Query{Options: []string{"HostName=o.example"}}, lines: "Match host o.example\n Port 5\n"},
		"to be left alone":             {lines: "IgnoreUnknown UseFoo*,Bar\nUseFoobar yes\nbar x y z\nForwardAgent yes\nLocalForward 1 a:2\nRemoteCommand x\nPort 5\n"},
	} {
		t.Run(name, func(t *testing.T) {
			q := c.q
			q.Host, q.Log = firstOf(c.host, "dev"), slog.New(slog.DiscardHandler)
			q.ConfigFile = filepath.Join(t.TempDir(), "config")
			write(t, q.ConfigFile, c.lines)
			asked, err := Resolve(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			read, err := readHere(t, q)
			if err != nil {
				t.Fatal(err)
			}
			theirs, ours := comparable(asked, read), comparable(read, asked)
			for i, typ := 0, reflect.TypeFor[Settings](); i < typ.NumField(); i++ {
				a, b := reflect.ValueOf(theirs).Field(i).Interface(), reflect.ValueOf(ours).Field(i).Interface()
				if !reflect.DeepEqual(a, b) {
					t.Errorf("%s: ssh says %q, and it was read as %q", typ.Field(i).Name, a, b)
				}
			}
		})
	}
}

func TestBothRefuseWhatIsWrong(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		testenv.Missing(t, "ssh")
	}
	dir := t.TempDir()
	write(t, dir+"/loop", "Include "+dir+"/loop\n")
	for name, lines := range map[string]string{
		"an open quote":             "User \"me\n",
		"an open quote of Host":     "Host \"dev\n",
		"an open quote of Match":    "Match host \"dev\n",
		"a port that is none":       "Port abc\n",
		"port 0":                    "Port 0\n",
		"no value":                  "User\n",
		"two values":                "User a b\n",
		"a flag that is none":       "BatchMode perhaps\n",
		"a time that is none":       "ConnectTimeout soon\n",
		"Match all with more":       "Match all host dev\n",
		"Match of nothing":          "Match host\n",
		"Host of nothing":           "Host\n",
		"SetEnv without =":          "SetEnv A\n",
		"no such token":             "HostName %q\n",
		"no such variable":          "IdentityFile ${NO_SUCH_VARIABLE}\n",
		"files without end":         "Include " + dir + "/loop\n",
		"an agent without a name":   "IdentityAgent $a-b\n",
		"a strictness that is none": "StrictHostKeyChecking maybe\n",
	} {
		q := Query{Host: "dev", Log: slog.New(slog.DiscardHandler), ConfigFile: filepath.Join(t.TempDir(), "config")}
		write(t, q.ConfigFile, lines)
		if s, err := Resolve(t.Context(), q); err == nil {
			t.Errorf("%s: ssh says %+v", name, s)
		}
		if s, err := readHere(t, q); err == nil {
			t.Errorf("%s: read as %+v", name, s)
		}
	}
	missing := Query{Host: "dev", Log: slog.New(slog.DiscardHandler), ConfigFile: dir + "/missing"}
	if _, err := Resolve(t.Context(), missing); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a missing file of -F, asked: %v", err)
	}
	if _, err := readHere(t, missing); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a missing file of -F, read: %v", err)
	}
}
