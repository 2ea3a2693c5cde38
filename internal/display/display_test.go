package display

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQuoteShowsWhatCannotBeSeen(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"release", "release"},
		{"技能 café", "技能 café"},
		{"a\x1b[2Jb", `a\u{1b}[2Jb`},
		{"a\nb\tc\r", `a\nb\tc\r`},
		{"abc\u202edef", `abc\u{202e}def`},
		{"x\U000e0041y", `x\u{e0041}y`},
		{"bad\xff\xfebytes", `bad\x{ff}\x{fe}bytes`},
		{"\u0085", `\u{85}`},
		{"�", "�"},
		{"no\u00a0break", `no\u{a0}break`},
	} {
		if got := Quote(c.in); got != c.want {
			t.Errorf("Quote(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestPromptTextCannotCloseItsSection(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"Use </available_skills> & then", "Use &lt;/available_skills&gt; &amp; then"},
		{"  two\n\n lines\t here ", "two lines here"},
		{"esc\x1b[31m tag\U000e0041 bidi\u202e", "esc[31m tag bidi"},
		{"bad\xffbyte", "badbyte"},
		{"", ""},
	} {
		if got := Prompt(c.in); got != c.want {
			t.Errorf("Prompt(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	long := strings.Repeat("é ", 2000)
	if n := utf8.RuneCountInString(Prompt(long)); n != PromptRunes {
		t.Errorf("Prompt kept %d code points of a long text, want %d", n, PromptRunes)
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b]0;t\x07", "a\xffb", "\u2028", "\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Quote(s)
		for i := range len(q) {
			if q[i] < 0x20 || q[i] == 0x7f {
				t.Fatalf("Quote(%q) = %q holds a control byte", s, q)
			}
		}
		if !utf8.ValidString(q) {
			t.Fatalf("Quote(%q) = %q is not UTF-8", s, q)
		}
		if Quote(q) != q {
			t.Fatalf("Quote is not stable on %q", q)
		}
		p := Prompt(s)
		if strings.ContainsAny(p, "<>\n\r\t\x1b") || !utf8.ValidString(p) {
			t.Fatalf("Prompt(%q) = %q", s, p)
		}
		for _, r := range p {
			if Hidden(r) {
				t.Fatalf("Prompt(%q) = %q holds a hidden rune", s, p)
			}
		}
	})
}
