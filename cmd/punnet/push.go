package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/punnet/punnet/bundle"
	"github.com/punnet/punnet/internal/display"
	"github.com/punnet/punnet/remote"
	"github.com/punnet/punnet/transport"
)

func (a *app) pushCommand() *cobra.Command {
	var all, dryRun bool
	cmd := &cobra.Command{
		Use:   "push TARGET SKILL...",
		Short: "Pin skills and publish them on a target",
		Long: `Push pins each skill into the host store and publishes it in the target's cache, where it
appears whole or not at all, private to the account, with its execute bits. A copy that is
there is verified by content; a damaged one is repaired. Nothing is installed on the target
and nothing of the skill is run.

` + targetHelp + `
SKILL is a name in this machine's catalog, or a path, which has a slash in it or is a dot.`,
		ValidArgsFunction: a.completeSkills(1, maxCompleted),
		Example:           "  punnet push devbox release\n  punnet push -p 2222 me@devbox ./release ~/skills/review\n  punnet push --all devbox",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return errors.New("no TARGET was named")
			case all && len(args) > 1:
				return errors.New("--all takes every skill; name none beside it")
			case !all && len(args) == 1:
				return errors.New("no SKILL was named; --all takes every skill in this machine's collections")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.push(cmd.Context(), args[0], args[1:], all, dryRun)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "push every skill in this machine's collections")
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "say what would be done, and write nothing here or there")
	return cmd
}

// resultJSON is what came of one bundle on one target.
type resultJSON struct {
	Event     string     `json:"event"`
	Target    string     `json:"target"`
	Skill     string     `json:"skill"`
	Digest    string     `json:"digest,omitempty"`
	Path      string     `json:"path,omitempty"`
	Outcome   string     `json:"outcome"`
	Files     int        `json:"files"`
	Bytes     int64      `json:"bytes"`
	BytesSent int64      `json:"bytesSent"`
	Error     *errorJSON `json:"error,omitempty"`
}

type summaryJSON struct {
	SchemaVersion int    `json:"schemaVersion"`
	Event         string `json:"event"`
	Published     int    `json:"published"`
	Present       int    `json:"present"`
	Repaired      int    `json:"repaired"`
	Failed        int    `json:"failed"`
	Targets       int    `json:"targets"`
	ElapsedMs     int64  `json:"elapsedMs"`
}

// outcomeFailed and those with "would-" stand beside remote's own outcomes.
const (
	outcomeFailed      = string(remote.Failed)
	outcomeWould       = "would-publish"
	outcomeWouldRepair = "would-repair"
)

// pushing is one run of push.
type pushing struct {
	*app
	target  string
	dryRun  bool
	summary summaryJSON
	access  bool // a failure was one of authentication or host key
}

func (a *app) push(ctx context.Context, targetArg string, args []string, all, dryRun bool) error {
	start := time.Now()
	t, err := parseTarget(targetArg)
	if err != nil {
		return err
	}
	var paths []string
	if all {
		paths, err = a.everything(ctx)
		args = paths
	} else {
		paths, err = a.locate(ctx, args)
	}
	if err != nil {
		return err
	}
	p := &pushing{app: a, target: targetArg, dryRun: dryRun, summary: summaryJSON{SchemaVersion: schemaVersion, Event: "summary", Targets: 1}}
	if dryRun {
		err = p.preview(ctx, t, args, paths)
	} else {
		err = p.publish(ctx, t, args, paths)
	}
	if err != nil {
		return err
	}
	p.summary.ElapsedMs = time.Since(start).Milliseconds()
	return p.end()
}

// end prints the summary and returns what the exit code says.
func (p *pushing) end() error {
	s := p.summary
	if p.json {
		p.printJSON(s)
	}
	switch {
	case s.Failed == 0:
		return nil
	case s.Published+s.Present+s.Repaired > 0:
		return found(exitSome)
	case p.access:
		return found(exitAccess)
	}
	return found(exitFailed)
}

// publish pins what the paths name and publishes it. Its error is an interruption, or a failure
// before there was anything to tell of single skills.
func (p *pushing) publish(ctx context.Context, t transport.Target, args, paths []string) error {
	store, err := p.store()
	if err != nil {
		return err
	}
	if release, err := store.Hold(ctx); err == nil { // store gc waits until all is published; pinning tells what is wrong
		defer release()
	}
	var pins []pinJSON
	for i, r := range p.pinEach(ctx, store, paths) {
		switch {
		case ctx.Err() != nil: // each pin clears away what it has begun, and is waited for
		case r.err != nil:
			p.failed(resultJSON{Skill: args[i]}, r.err)
		default:
			p.warn(r.pin.Warnings)
			pins = append(pins, r.pin)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(pins) == 0 {
		return nil
	}
	bundles, err := openAll(store, pins)
	defer closeAll(bundles)
	if err != nil {
		return err
	}
	var results []remote.Result
	done := p.progress("publishing " + plural(len(bundles), "skill") + " on " + display.Quote(p.target))
	target, err := p.reach(ctx, t)
	if err == nil {
		defer target.conn.Close()
		results, err = target.cache.Publish(ctx, bundles...)
	}
	done()
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	p.tell(t, pins, results, err)
	return nil
}

func openAll(store *bundle.Store, pins []pinJSON) ([]*bundle.Bundle, error) {
	var bundles []*bundle.Bundle
	for _, pin := range pins {
		d, err := bundle.ParseDigest(pin.Digest)
		if err != nil {
			return bundles, err
		}
		b, err := store.Open(d)
		if err != nil {
			return bundles, err
		}
		bundles = append(bundles, b)
	}
	return bundles, nil
}

func closeAll(bundles []*bundle.Bundle) {
	for _, b := range bundles {
		b.Close()
	}
}

// tell says what became of each pin: its result, or the error that ended the whole before it.
func (p *pushing) tell(t transport.Target, pins []pinJSON, results []remote.Result, err error) {
	var there []bundle.Digest
	for i, pin := range pins {
		r := resultJSON{Skill: pin.Skill, Digest: pin.Digest, Files: pin.Files, Bytes: pin.Bytes}
		if i >= len(results) {
			p.failed(r, err)
			continue
		}
		r.Path, r.BytesSent = results[i].Path, results[i].Sent
		if results[i].Outcome == remote.Failed {
			p.failed(r, results[i].Err)
			continue
		}
		there = append(there, results[i].Digest)
		p.succeeded(r, string(results[i].Outcome))
	}
	p.memorize(t, there)
}

func (p *pushing) succeeded(r resultJSON, outcome string) {
	r.Event, r.Target, r.Outcome = "result", p.target, outcome
	switch outcome {
	case string(remote.Present):
		p.summary.Present++
	case string(remote.Repaired), outcomeWouldRepair:
		p.summary.Repaired++
	default:
		p.summary.Published++
	}
	if p.json {
		p.printJSON(r)
		return
	}
	detail := fmt.Sprintf("%s, %s", plural(r.Files, "file"), size(r.Bytes))
	if r.BytesSent > 0 {
		detail += ", " + size(r.BytesSent) + " sent"
	}
	fmt.Fprintf(p.stdout, "%s %s (%s)\n", p.paint(p.stdout, green, outcome), display.Quote(r.Skill), detail)
	if r.Path != "" {
		fmt.Fprintf(p.stdout, "  %s\n", display.Quote(r.Path))
	}
}

func (p *pushing) failed(r resultJSON, err error) {
	p.summary.Failed++
	p.access = p.access || connectionExit(err) == exitAccess
	e := describeError(err)
	r.Event, r.Target, r.Outcome, r.Error = "result", p.target, outcomeFailed, &e
	if p.json {
		p.printJSON(r)
		return
	}
	p.complain("push "+display.Quote(p.target), e.Message, e.Hint)
}

// preview says what publish would do. It writes nothing on either side.
func (p *pushing) preview(ctx context.Context, t transport.Target, args, paths []string) error {
	var scans []resultJSON
	var digests []bundle.Digest
	for i, path := range paths {
		r, d, err := p.scanned(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.failed(resultJSON{Skill: args[i]}, err)
			continue
		}
		scans, digests = append(scans, r), append(digests, d)
	}
	if len(scans) == 0 {
		return nil
	}
	done := p.progress("asking " + display.Quote(p.target))
	var copies []remote.Copy
	target, err := p.reach(ctx, t)
	if err == nil {
		defer target.conn.Close()
		copies, err = target.cache.Check(ctx, digests...)
	}
	done()
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	for i, r := range scans {
		if i >= len(copies) {
			p.failed(r, err)
			continue
		}
		r.Path = copies[i].Path
		switch copies[i].State {
		case remote.Whole:
			p.succeeded(r, string(remote.Present))
		case remote.Damaged:
			p.succeeded(r, outcomeWouldRepair)
		default:
			p.succeeded(r, outcomeWould)
		}
	}
	return nil
}

// scanned returns what pinning a skill would give.
func (p *pushing) scanned(ctx context.Context, path string) (resultJSON, bundle.Digest, error) {
	src, err := p.openSkill(path)
	if err != nil {
		return resultJSON{}, bundle.Digest{}, err
	}
	defer src.Close()
	tree, report, parsed, err := p.scanSkill(ctx, src)
	if err != nil {
		return resultJSON{}, bundle.Digest{}, aboutSkill(src, err)
	}
	p.warn(append(parsed.diagnostics, ownerWarnings(src, report)...))
	d := tree.Manifest.Digest()
	return resultJSON{Skill: src.Name, Digest: d.String(), Files: tree.Manifest.Files(), Bytes: tree.Bytes}, d, nil
}
