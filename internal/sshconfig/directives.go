package sshconfig

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// shape is how a directive's arguments are taken. Of most, the first that applies is the one.
type shape int

const (
	ignored shape = iota // nothing to us
	one                  // one argument
	list1                // all arguments of one line
	each                 // one argument, and each such line adds its own
	rest                 // the line as it stands, for a shell or another parser
	sendEnv              // patterns, which add up, and with - take away
	unable               // means something, and cannot be done here
)

// directive is what is known of a keyword.
type directive struct {
	shape shape
	// value checks an argument and gives it the form that `ssh -G` prints; nil takes any.
	value func(string) (string, error)
}

// directives are the keywords that ssh knows, in lower case.
func directives() map[string]directive {
	able, old := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	algorithms := func(able, old []string) directive {
		return directive{one, func(s string) (string, error) { return assemble(s, able, slices.Concat(able, old)) }}
	}
	d := map[string]directive{
		"addkeystoagent": {list1, nil}, "canonicaldomains": {list1, nil},
		"globalknownhostsfile": {list1, nil}, "userknownhostsfile": {list1, nil}, "setenv": {list1, assignment},
		"identityfile": {each, nil}, "certificatefile": {each, nil},
		"proxycommand": {rest, nil}, "proxyjump": {rest, nil}, "knownhostscommand": {rest, nil},
		"sendenv": {sendEnv, nil}, "canonicalizepermittedcnames": {unable, nil}, "refuseconnection": {one, nil},
		"addressfamily":         {one, oneOf("any", "inet", "inet6")},
		"stricthostkeychecking": {one, oneOf("yes", "true", "no", "false", "off", "ask", "accept-new")},
		"canonicalizehostname":  {one, oneOf("yes", "true", "no", "false", "always")},
		"pubkeyauthentication":  {one, oneOf("yes", "true", "no", "false", "unbound", "host-bound")},
		"port":                  {one, number16}, "identityagent": {one, agentName},
		"ciphers": algorithms(able.Ciphers, old.Ciphers), "macs": algorithms(able.MACs, old.MACs),
		"kexalgorithms":            algorithms(able.KeyExchanges, old.KeyExchanges),
		"hostkeyalgorithms":        algorithms(able.HostKeys, old.HostKeys),
		"pubkeyacceptedalgorithms": algorithms(able.PublicKeyAuths, old.PublicKeyAuths),
		"casignaturealgorithms":    algorithms(able.PublicKeyAuths, old.PublicKeyAuths),
	}
	add := func(known directive, keys string) {
		for _, key := range strings.Fields(keys) {
			d[key] = known
		}
	}
	add(directive{one, nil}, "bindaddress bindinterface controlpath hostkeyalias hostname ignoreunknown pkcs11provider preferredauthentications revokedhostkeys user")
	add(directive{one, oneOf("yes", "true", "no", "false")}, `batchmode canonicalizefallbacklocal compression gssapiauthentication
		hashknownhosts hostbasedauthentication identitiesonly kbdinteractiveauthentication passwordauthentication proxyusefdpass`)
	add(directive{one, count}, "canonicalizemaxdots connectionattempts numberofpasswordprompts requiredrsasize serveralivecountmax")
	add(directive{one, duration}, "connecttimeout serveraliveinterval")
	add(directive{}, `afstokenpassing channeltimeout checkhostip cipher clearallforwardings compressionlevel controlmaster controlpersist
		dynamicforward enableescapecommandline enablesshkeysign escapechar exitonforwardfailure fallbacktorsh fingerprinthash
		forkafterauthentication forwardagent forwardx11 forwardx11timeout forwardx11trusted gatewayports globalknownhostsfile2
		gssapiclientidentity gssapidelegatecredentials gssapikexalgorithms gssapikeyexchange gssapirenewalforcesrekey
		gssapiserveridentity gssapitrustdns hostbasedacceptedalgorithms hostbasedkeytypes ipqos kbdinteractivedevices
		kerberosauthentication kerberostgtpassing localcommand localforward loglevel logverbose nohostauthenticationforlocalhost
		obscurekeystroketiming permitlocalcommand permitremoteopen protocol rekeylimit remotecommand remoteforward requesttty
		rhostsauthentication rhostsrsaauthentication rsaauthentication securitykeyprovider sessiontype stdinnull
		streamlocalbindmask streamlocalbindunlink syslogfacility tag tcpkeepalive tunnel tunneldevice updatehostkeys usekeychain
		useprivilegedport userknownhostsfile2 userroaming usersh verifyhostkeydns versionaddendum visualhostkey warnweakcrypto
		xauthlocation keepalive`)
	return d
}

// alias returns the present name of a keyword that has an older one.
func alias(key string) string {
	switch key {
	case "pubkeyacceptedkeytypes":
		return "pubkeyacceptedalgorithms"
	case "challengeresponseauthentication", "skeyauthentication", "tisauthentication":
		return "kbdinteractiveauthentication"
	case "dsaauthentication":
		return "pubkeyauthentication"
	case "identityfile2":
		return "identityfile"
	case "smartcarddevice":
		return "pkcs11provider"
	}
	return key
}

// oneOf takes one of words, in any case.
func oneOf(words ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if low := strings.ToLower(s); slices.Contains(words, low) {
			return low, nil
		}
		return "", fmt.Errorf("is none of %s", strings.Join(words, ", "))
	}
}

func number16(s string) (string, error) {
	if n, err := strconv.ParseUint(s, 10, 16); err != nil || n == 0 {
		return "", errors.New("is not a number from 1 to 65535")
	}
	return s, nil
}

func count(s string) (string, error) {
	if _, err := strconv.ParseInt(s, 10, 32); err != nil {
		return "", errors.New("is not a number")
	}
	return s, nil
}

// duration turns 90, 1m30s or none into seconds.
func duration(s string) (string, error) {
	if none(s) == "" {
		return "none", nil
	}
	if !regexp.MustCompile(`^([0-9]{1,9}[smhdwSMHDW]?)+$`).MatchString(s) {
		return "", errors.New("is not a time such as 90 or 1m30s")
	}
	total := 0
	for _, part := range regexp.MustCompile(`[0-9]+.?`).FindAllString(strings.ToLower(s), -1) {
		n, _ := strconv.Atoi(strings.TrimRight(part, "smhdw"))
		unit := map[byte]int{'m': 60, 'h': 3600, 'd': 86400, 'w': 604800}[part[len(part)-1]]
		if total += n * max(1, unit); total > math.MaxInt32 {
			return "", errors.New("is too long a time")
		}
	}
	return strconv.Itoa(total), nil
}

func assignment(s string) (string, error) {
	if !strings.Contains(s, "=") {
		return "", errors.New("is not NAME=value")
	}
	return s, nil
}

func agentName(s string) (string, error) {
	if name, ok := strings.CutPrefix(s, "$"); ok && !strings.HasPrefix(name, "{") &&
		!regexp.MustCompile(`^[A-Za-z0-9_]+$`).MatchString(name) {
		return "", errors.New("is not the name of a variable")
	}
	return s, nil
}

// assemble reads a list of algorithms: instead of the library's own (def), or with + behind them, with
// - without these, with ^ before them. A name may be a pattern for any of all.
func assemble(s string, def, all []string) (string, error) {
	if s == "" {
		return "", errors.New("is empty")
	}
	how := s[0]
	if strings.IndexByte("+-^", how) >= 0 {
		s = s[1:]
	}
	var names []string
	for p := range strings.SplitSeq(s, ",") {
		if !strings.ContainsAny(p, "*?") {
			names = append(names, p)
			continue
		}
		for _, name := range all {
			if Matches(name, p) {
				names = append(names, name)
			}
		}
	}
	switch how {
	case '+':
		names = slices.Concat(def, names)
	case '^':
		names = slices.Concat(names, def)
	case '-':
		names = slices.DeleteFunc(slices.Clone(def), func(name string) bool { return slices.Contains(names, name) })
	}
	names = slices.DeleteFunc(distinct(names), func(name string) bool { return name == "" })
	if len(names) == 0 {
		return "", errors.New("leaves no algorithm")
	}
	return strings.Join(names, ","), nil
}
