package session

import "github.com/punnet/punnet/internal/display"

// Code is a kind of error, for errors.Is and, as text, for programs: the words stay.
type Code string

// The kinds of errors.
const (
	ErrNoConversation Code = "no-conversation"      // there is none of that id
	ErrTaken          Code = "conversation-exists"  // there is one of that id already
	ErrBadID          Code = "bad-id"               // what is no id of a conversation
	ErrDamaged        Code = "damaged-conversation" // the journal is not what was written
	ErrNewer          Code = "newer-conversation"   // the journal is of a later version of Punnet
	ErrNoEvent        Code = "no-event"             // the conversation has no event of that id
	ErrNoSkill        Code = "no-skill"             // no skill of that name or path can be loaded here
	ErrBadSkill       Code = "bad-skill"            // the skill is there and cannot be loaded
	ErrTooLarge       Code = "too-large"            // instructions are over a limit
	ErrNotLoaded      Code = "not-loaded"           // no skill of that name is active here
	ErrNoReference    Code = "no-reference"         // the skill has no text of that path
	ErrUnavailable    Code = "unavailable"          // the environment cannot be reached
	ErrElsewhere      Code = "elsewhere"            // the target is not the machine and account that it was
	ErrMeanwhile      Code = "moved-meanwhile"      // the conversation moved while a skill was loaded
	ErrNotCommand     Code = "not-a-command"        // a line that is none of the commands
	ErrNoTool         Code = "no-tool"              // the profile has no tool of that name
	ErrBadArguments   Code = "bad-arguments"        // a tool's arguments are not what it takes
)

// Codes returns every kind of error, for tables and their tests.
func Codes() []Code {
	return []Code{
		ErrNoConversation, ErrTaken, ErrBadID, ErrDamaged, ErrNewer, ErrNoEvent, ErrNoSkill, ErrBadSkill, ErrTooLarge,
		ErrNotLoaded, ErrNoReference, ErrUnavailable, ErrElsewhere, ErrMeanwhile, ErrNotCommand, ErrNoTool, ErrBadArguments,
	}
}

// Error returns the code itself, so that a Code can stand in an error chain.
func (c Code) Error() string { return string(c) }

// Error is something that a conversation could not do. errors.Is finds its Code.
type Error struct {
	Code   Code
	About  string // a name, path or id it is about, not quoted; "" for none
	What   string // what is wrong, a clause that can be shown
	Err    error  // the cause, or nil
	Advice string // what a person can do, or ""
}

// Error returns one line: what it is about, what is wrong, and the cause.
func (e *Error) Error() string {
	s := e.What
	if e.About != "" {
		s = display.Quote(e.About) + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Hint returns Advice.
func (e *Error) Hint() string { return e.Advice }

// Unwrap returns the code and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}
