package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/transport"
)

// sayer is a target that answers whatever a test has it say. BEGIN and END in its words are the
// command's.
type sayer struct {
	transport.Conn
	words   string // standard output
	endless string // and then this for ever
	errors  string // standard error
	err     error
	eats    bool // it reads all of its standard input first
	calls   int
}

func (*sayer) Server() string { return "SSH-2.0-sayer" }

func (*sayer) Files(context.Context) (transport.FS, error) {
	return nil, &transport.Error{Op: "files", Kind: transport.ErrNoFiles}
}

func (s *sayer) Exec(ctx context.Context, cmd transport.Cmd) error {
	s.calls++
	if s.eats && cmd.Stdin != nil {
		_, _ = io.Copy(io.Discard, cmd.Stdin)
	}
	if !strings.Contains(cmd.Line, "' punnet ") {
		return &transport.ExitError{Status: 127}
	}
	after := cmd.Line[strings.LastIndex(cmd.Line, "' punnet ")+len("' punnet "):]
	nonce := after[:nonceLen]
	words := strings.NewReplacer("BEGIN", "\nbegin:"+nonce, "END", "end:"+nonce).Replace(s.words)
	_, _ = io.WriteString(cmd.Stderr, s.errors)
	if _, err := io.WriteString(cmd.Stdout, words); err != nil {
		return &transport.Error{Op: "exec", Err: err}
	}
	for s.endless != "" {
		if err := ctx.Err(); err != nil {
			return &transport.Error{Op: "exec", Err: err}
		}
		if _, err := io.WriteString(cmd.Stdout, s.endless); err != nil {
			return &transport.Error{Op: "exec", Err: err}
		}
	}
	return s.err
}

const (
	hexA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hexB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	hexC = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

func digest(t testing.TB, s string) bundle.Digest {
	d, err := bundle.ParseDigest(s)
	must(t, err)
	return d
}

// TestAHostileAnswerToCheckIsATypedError also holds what a lie costs to a bound.
func TestAHostileAnswerToCheckIsATypedError(t *testing.T) {
	whole := "BEGIN\nroot /c\nis " + hexA + " ok release\nis " + hexB + " absent\nEND\n"
	for name, c := range map[string]struct {
		sayer
		want error
	}{
		"an honest one":             {sayer{words: whole}, nil},
		"noise around it":           {sayer{words: "hello\nbegin:\n" + whole + "bye\n"}, nil},
		"no end of output":          {sayer{words: whole, endless: "more and more\n"}, nil},
		"empty lines":               {sayer{words: strings.ReplaceAll(whole, "\nis", "\n\n\nis")}, nil},
		"a status":                  {sayer{words: whole, err: &transport.ExitError{Status: 1}}, nil},
		"a digest not asked about":  {sayer{words: "BEGIN\nroot /c\nis " + hexC + " absent\nEND\n"}, ErrReply},
		"a digest twice":            {sayer{words: strings.Replace(whole, "END", "is "+hexA+" absent\nEND", 1)}, ErrReply},
		"a digest missing":          {sayer{words: "BEGIN\nroot /c\nis " + hexA + " ok release\nEND\n"}, ErrReply},
		"a digest in capitals":      {sayer{words: strings.ReplaceAll(whole, hexA, strings.ToUpper(hexA))}, ErrReply},
		"an unknown state":          {sayer{words: strings.Replace(whole, "absent", "fine", 1)}, ErrReply},
		"publish's state":           {sayer{words: strings.Replace(whole, "absent", "older", 1)}, ErrReply},
		"a state too long":          {sayer{words: strings.Replace(whole, "absent", "absent x", 1)}, ErrReply},
		"no root":                   {sayer{words: strings.Replace(whole, "root /c\n", "", 1)}, ErrReply},
		"two roots":                 {sayer{words: strings.Replace(whole, "root /c\n", "root /c\nroot /d\n", 1)}, ErrReply},
		"a relative root":           {sayer{words: strings.Replace(whole, "/c", "c", 1)}, ErrReply},
		"a root with an escape":     {sayer{words: strings.Replace(whole, "/c", "/c\x1b[2J", 1)}, ErrReply},
		"a root of 5,000 bytes":     {sayer{words: strings.Replace(whole, "/c", "/"+strings.Repeat("c", 5000), 1)}, ErrReply},
		"a name that is a path":     {sayer{words: strings.Replace(whole, "release", "../../etc", 1)}, ErrReply},
		"a name that is ..":         {sayer{words: strings.Replace(whole, "release", "..", 1)}, ErrReply},
		"no name":                   {sayer{words: strings.Replace(whole, " release", "", 1)}, ErrReply},
		"none after a state":        {sayer{words: strings.Replace(whole, "END", "none\nEND", 1)}, ErrReply},
		"a line after none":         {sayer{words: "BEGIN\nroot /c\nnone\nis " + hexA + " absent\nEND\n"}, ErrReply},
		"none":                      {sayer{words: "BEGIN\nroot /c\nnone\nEND\n"}, nil},
		"a NUL":                     {sayer{words: strings.Replace(whole, "absent", "absent\x00", 1)}, ErrReply},
		"a line of another verb":    {sayer{words: strings.Replace(whole, "END", "other x\nEND", 1)}, ErrReply},
		"go":                        {sayer{words: strings.Replace(whole, "END", "go\nEND", 1)}, ErrReply},
		"a carriage return":         {sayer{words: strings.ReplaceAll(whole, "\n", "\r\n")}, ErrNoAccess},
		"no end":                    {sayer{words: strings.Replace(whole, "END\n", "", 1)}, ErrReply},
		"another's end":             {sayer{words: strings.Replace(whole, "END", "end:"+hexA[:nonceLen], 1)}, ErrReply},
		"half an end":               {sayer{words: strings.TrimSuffix(whole, "\n")}, ErrReply},
		"nothing":                   {sayer{}, ErrNoAccess},
		"another's beginning":       {sayer{words: strings.Replace(whole, "BEGIN", "begin:"+hexA[:nonceLen], 1)}, ErrNoAccess},
		"a line of 1 MB":            {sayer{words: "BEGIN\nroot /c\n" + strings.Repeat("x", 1<<20)}, ErrReply},
		"noise without end":         {sayer{endless: "noise\n"}, ErrReply},
		"noise without lines":       {sayer{endless: strings.Repeat("x", 10_000)}, ErrReply},
		"an answer without end":     {sayer{words: "BEGIN\nroot /c\n", endless: "\n"}, ErrReply},
		"errors without end":        {sayer{words: whole, errors: strings.Repeat("x", 2<<20)}, nil},
		"errors and no answer":      {sayer{errors: strings.Repeat("x", 2<<20)}, ErrReply},
		"unsafe":                    {sayer{words: "BEGIN\nunsafe mode /c\nEND\n"}, ErrUnsafe},
		"unsafe without a path":     {sayer{words: "BEGIN\nunsafe mode\nEND\n"}, ErrReply},
		"unsafe in a new way":       {sayer{words: "BEGIN\nunsafe colour /c\nEND\n"}, ErrReply},
		"a failure":                 {sayer{words: "BEGIN\nfail /c\nsaid mkdir: No space left on device\nEND\n"}, ErrNoSpace},
		"two failures":              {sayer{words: "BEGIN\nfail /c\nfail /d\nEND\n"}, ErrReply},
		"a failure and then a root": {sayer{words: "BEGIN\nfail /c\nroot /c\nEND\n"}, ErrReply},
		"a tool":                    {sayer{words: "BEGIN\ntool find\nEND\n"}, ErrTools},
		"a lost connection":         {sayer{words: "BEGIN\n", err: &transport.Error{Op: "exec", Kind: transport.ErrLost}}, transport.ErrLost},
		"no commands":               {sayer{err: &transport.Error{Op: "exec", Kind: transport.ErrNoExec}}, transport.ErrNoExec},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			copies, err := openCache(t, &c.sayer, Options{}).Check(t.Context(), digest(t, hexA), digest(t, hexB))
			runtime.ReadMemStats(&after)
			if !errors.Is(err, c.want) || err == nil && len(copies) != 2 || err != nil && copies != nil {
				t.Errorf("got %+v, %v, want %v", copies, err, c.want)
			}
			if err != nil {
				checkWords(t, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
				t.Errorf("it cost %d bytes", n)
			}
		})
	}
}

// checkWords holds an error to one bounded line that moves no terminal.
func checkWords(t testing.TB, err error) {
	t.Helper()
	s := err.Error() + transport.Hint(err)
	if len(s) > 8<<10 {
		t.Errorf("the error has %d bytes", len(s))
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			t.Fatalf("the error %q is not fit to be shown", s)
		}
	}
}

func TestAHostileAnswerToListIsATypedError(t *testing.T) {
	one := "copy " + hexA + " ok 1700000000 3 100 release\n"
	for name, c := range map[string]struct {
		words string
		want  error
	}{
		"an honest one":       {"BEGIN\nroot /c\nnow 1700000001\n" + one + "other x y\nEND\n", nil},
		"a 32-bit count":      {"BEGIN\nroot /c\nnow 1\ncopy " + hexA + " ok - 3 -100 release\nEND\n", nil},
		"no clock":            {"BEGIN\nroot /c\n" + one + "END\n", ErrReply},
		"a clock alone":       {"BEGIN\nroot /c\nnow x\nEND\n", ErrReply},
		"a copy twice":        {"BEGIN\nroot /c\nnow 1\n" + one + one + "END\n", ErrReply},
		"a name twice":        {"BEGIN\nroot /c\nnow 1\nother x\nother x\nEND\n", ErrReply},
		"a count of files":    {"BEGIN\nroot /c\nnow 1\n" + strings.Replace(one, " 3 ", " three ", 1) + "END\n", ErrReply},
		"a count below zero":  {"BEGIN\nroot /c\nnow 1\n" + strings.Replace(one, " 3 ", " -3 ", 1) + "END\n", ErrReply},
		"a count with a plus": {"BEGIN\nroot /c\nnow 1\n" + strings.Replace(one, " 3 ", " +3 ", 1) + "END\n", ErrReply},
		"too few fields":      {"BEGIN\nroot /c\nnow 1\ncopy " + hexA + " ok 1 2 3\nEND\n", ErrReply},
		"too short a digest":  {"BEGIN\nroot /c\nnow 1\n" + strings.Replace(one, hexA, "aa", 1) + "END\n", ErrReply},
		"an unknown state":    {"BEGIN\nroot /c\nnow 1\n" + strings.Replace(one, " ok ", " absent ", 1) + "END\n", ErrReply},
	} {
		_, copies, err := openCache(t, &sayer{words: c.words}, Options{}).List(t.Context())
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %+v, %v, want %v", name, copies, err, c.want)
		}
	}
}

func TestAHostileAnswerToPublishIsATypedError(t *testing.T) {
	b := plainSkill().pin(t, "release")
	d := b.Manifest.Digest().String()
	for name, c := range map[string]struct {
		words string
		want  error
	}{
		"whole":                    {"BEGIN\nroot /c\nis D ok\nEND\n", nil},
		"placed":                   {"BEGIN\nroot /c\nis D absent\ngo\nnew D\nEND\n", nil},
		"no result":                {"BEGIN\nroot /c\nis D absent\ngo\nEND\n", ErrReply},
		"a result at once":         {"BEGIN\nroot /c\nis D absent\nnew D\nEND\n", ErrReply},
		"no state":                 {"BEGIN\nroot /c\ngo\nnew D\nEND\n", ErrReply},
		"a result for a whole one": {"BEGIN\nroot /c\nis D ok\ngo\nnew D\nEND\n", ErrReply},
		"two results":              {"BEGIN\nroot /c\nis D absent\ngo\nnew D\nhad D\nEND\n", ErrReply},
		"go twice":                 {"BEGIN\nroot /c\nis D absent\ngo\ngo\nnew D\nEND\n", ErrReply},
		"older unasked":            {"BEGIN\nroot /c\nis D older\ngo\nnew D\nEND\n", ErrReply},
		"a file of no copy":        {"BEGIN\nroot /c\n=f " + hexA + "  ./release/SKILL.md\nis D absent\ngo\nnew D\nEND\n", ErrReply},
		"files of a copy":          {"BEGIN\nroot /c\nis D damaged\n=f " + hexA + "  ./../../etc/passwd\n=x\n=\ngo\nmended D\nEND\n", nil},
		"a torn stream":            {"BEGIN\nroot /c\nis D absent\ngo\ntorn D\nsaid gzip: unexpected end of file\nEND\n", errFailed},
		"a full disk":              {"BEGIN\nroot /c\nis D absent\ngo\ntorn D\nsaid tar: x: Cannot write: No space left on device\nEND\n", ErrNoSpace},
		"not what was sent":        {"BEGIN\nroot /c\nis D absent\ngo\nbad D\nEND\n", errFailed},
		"taken":                    {"BEGIN\nroot /c\nis D absent\ngo\nrefused D\nEND\n", errFailed},
		"a failure after all":      {"BEGIN\nroot /c\nis D absent\nfail /c\nsaid chmod: Read-only file system\nEND\n", ErrReadOnly},
		"a missing program":        {"BEGIN\nroot /c\nis D absent\ntool tar\nEND\n", ErrTools},
	} {
		results, err := openCache(t, &sayer{words: strings.ReplaceAll(c.words, " D", " "+d)}, Options{}).Publish(t.Context(), b)
		if err == nil && results[0].Err != nil {
			err = results[0].Err
			if _, ok := errors.AsType[*DamagedError](err); ok != (name == "not what was sent") {
				t.Errorf("%s: %v", name, err)
			}
		}
		failed := len(results) == 1 && results[0].Outcome == Failed && results[0].Err != nil
		if c.want == errFailed && !failed || c.want != errFailed && !errors.Is(err, c.want) || (err != nil) != failed {
			t.Errorf("%s: got %+v, %v, want %v", name, results, err, c.want)
		}
		if err != nil {
			checkWords(t, err)
		}
	}
}

// errFailed stands for any error.
var errFailed = errors.New("any error")

// TestACommandThatEatsItsInputIsNotWaitedFor is a forced command that reads until its end, whether
// the bundle is sent at once or after asking.
func TestACommandThatEatsItsInputIsNotWaitedFor(t *testing.T) {
	b := plainSkill().pin(t, "release")
	for _, believed := range []bool{false, true} {
		w := newExecWay(&sayer{words: "not yours\n", eats: true}, Options{
			Dir: "berry/skills", Believed: func(bundle.Digest) bool { return believed },
		})
		w.silence = 50 * time.Millisecond
		_, err := w.publish(t.Context(), []*bundle.Bundle{b})
		if _, ok := errors.AsType[*noExecError](err); !ok || !strings.Contains(err.Error(), "not yours") {
			t.Errorf("believed %v: got %v", believed, err)
		}
	}
}

// slowSayer says states one by one, each after most of the time that silence may last.
type slowSayer struct {
	sayer
	pause time.Duration
}

func (s *slowSayer) Exec(ctx context.Context, cmd transport.Cmd) error {
	after := cmd.Line[strings.LastIndex(cmd.Line, "' punnet ")+len("' punnet "):]
	f := strings.Fields(after)
	say := func(format string, args ...any) {
		time.Sleep(s.pause)
		fmt.Fprintf(cmd.Stdout, format, args...)
	}
	say("begin:%s\nroot /c\n", f[0])
	for _, d := range f[2:] {
		say("is %s absent\n", d)
	}
	say("go\n")
	n, err := io.Copy(io.Discard, cmd.Stdin)
	for _, d := range f[2:] {
		result := "new"
		if n == 0 || err != nil {
			result = "torn"
		}
		say("%s %s\n", result, d)
	}
	say("end:%s\n", f[0])
	return nil
}

func TestATargetThatIsSlowButNotSilentIsWaitedFor(t *testing.T) {
	var bundles []*bundle.Bundle
	for i := range 4 {
		bundles = append(bundles, testSkill{"SKILL.md": fmt.Sprint(i)}.pin(t, "release"))
	}
	w := newExecWay(&slowSayer{pause: 120 * time.Millisecond}, Options{Dir: "d", Believed: func(bundle.Digest) bool { return true }})
	w.silence = 300 * time.Millisecond
	results, err := w.publish(t.Context(), bundles)
	must(t, err)
	for _, r := range results {
		if r.Outcome != Published {
			t.Errorf("%+v", r)
		}
	}
}

// FuzzReply holds the parser to its promises on any answer, cut anywhere.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		"root /c\nis " + hexA + " ok release\nis " + hexB + " absent\n",
		"root /c\nis " + hexA + " damaged\n=f " + hexB + "  ./x\nis " + hexB + " absent\ngo\nmended " + hexA + "\nnew " + hexB + "\nsaid x\n",
		"root /c\nnow 1\ncopy " + hexA + " ok 1 2 3 release\nother a/b\n",
		"root /c\nremoved " + hexA + "\nkept " + hexB + " x\n",
		"now 1\nhas tar sh\nversion tar 1\nfree 1\nroot /c\nwritable\n", "has tar\nhomedir /x\nroot /c\nreadonly /\n", "unsafe mode /c\n", "fail /c\nsaid x\n", "tool x\n", "home\n", "root /c\nnone\n",
	} {
		for verb := range 5 {
			f.Add(byte(verb), byte(7), "noise\nbegin:N\n"+s+"end:N\nbye")
		}
	}
	m, err := bundle.ParseManifest([]byte("d ./release\nf " + hexC + "  ./release/SKILL.md\n"))
	must(f, err)
	f.Fuzz(func(t *testing.T, verb, cut byte, text string) {
		r := &reply{verb: []string{verbCheck, verbPublish, verbList, verbPrune, verbProbe}[verb%5], seen: map[string]bool{}, ready: func() {}}
		if r.verb == verbProbe {
			r.facts = newFacts()
		} else if r.verb != verbList {
			r.asked = map[bundle.Digest]*asked{digest(t, hexA): {manifest: m}, digest(t, hexB): {manifest: m, older: true}}
		}
		fr := newFrame("N", 64<<10, r.take)
		var werr error
		for rest := []byte(text); len(rest) > 0 && werr == nil; {
			n := min(int(cut)+1, len(rest))
			var took int
			if took, werr = fr.Write(rest[:n]); werr == nil && took != n {
				t.Fatalf("took %d of %d bytes", took, n)
			}
			rest = rest[n:]
		}
		if _, again := fr.Write([]byte("x")); werr != nil && again == nil {
			t.Fatal("it went on after an error")
		}
		if len(fr.part) > maxReplyLine || len(fr.noise.Bytes()) > display.SaidBytes {
			t.Fatalf("it holds %d and %d bytes", len(fr.part), len(fr.noise.Bytes()))
		}
		if fr.state != afterAnswer || werr != nil && !errors.Is(werr, errAfter) {
			return
		}
		checkAnswer(t, r, text)
	})
}

// checkAnswer holds what was taken for a whole answer to what a caller may rely on.
func checkAnswer(t *testing.T, r *reply, text string) {
	err := r.end()
	if err != nil {
		checkWords(t, notUnderstood(r.verb, text, err))
		return
	}
	if err := checkPath(r.root); err != nil {
		t.Fatalf("the root is %q: %v", r.root, err)
	}
	if f := r.facts; f != nil && (f.now < 0 || f.free < -1 || f.nodes < -1 || f.writable && f.readonly != "" || len(f.tools) > strings.Count(probed, " ")+1) {
		t.Fatalf("the facts %+v", f)
	}
	for d, a := range r.asked {
		if !r.none && a.state == "" && a.result == "" {
			t.Fatalf("nothing is known of %s", d)
		}
		if a.state == "ok" && r.verb == verbCheck && bundle.CheckName(a.name) != nil {
			t.Fatalf("a whole copy has the name %q", a.name)
		}
		for p := range a.intact {
			if p != "release/SKILL.md" {
				t.Fatalf("the path %q was taken over", p)
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range r.copies {
		key := fmt.Sprint(c.State == Foreign, c.Digest, c.State == Foreign && seen[c.Name])
		if c.Files < 0 || c.Bytes < 0 || seen[key] && c.State != Foreign || strings.Contains(c.Name, "/") || bytes.IndexByte([]byte(c.Name), 0) >= 0 {
			t.Fatalf("the copy %+v", c)
		}
		seen[key] = true
	}
}
