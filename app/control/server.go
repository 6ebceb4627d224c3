package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"countersign/worker"
	"countersign/worker/policy"
	"countersign/worker/safetext"
)

// Server answers on the control socket of a data directory.
type Server struct {
	Desk    Desk
	Rules   Rulebook           // nil: there are none
	Raise   func()             // brings the window to the front; nil where there is none
	Tell    func(words string) // says something to the operator
	Version string
	Log     *slog.Logger

	Quitting func() bool       // nil: never
	LeftOpen []worker.LeftOpen // unfinished, and no connection is to it
}

// Listen opens the control socket in dir. The caller holds the lock of the data
// directory: a socket that is there is a leftover.
func Listen(dir string) (net.Listener, error) {
	l, err := listen(dir)
	if err != nil {
		return nil, fmt.Errorf("open the control socket: %w", err)
	}
	return l, nil
}

// Serve answers on what Listen opened until ctx ends, and closes it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		ConnContext:       withPeer,
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the control socket: %w", err)
	}
	return nil
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, Status{PID: os.Getpid(), Window: s.Raise != nil, Version: s.Version, Snapshot: s.Desk.Snapshot(),
			Quitting: s.Quitting != nil && s.Quitting(), LeftOpen: s.LeftOpen})
	})
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) {
		if s.Rules == nil {
			write(w, http.StatusConflict, answer{Error: errNoRules.Error()})
			return
		}
		write(w, http.StatusOK, s.Rules.State())
	})
	mux.HandleFunc("POST /preview", s.preview)
	mux.HandleFunc("GET /grants", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, s.Desk.Grants())
	})
	mux.HandleFunc("POST /approve", func(w http.ResponseWriter, r *http.Request) {
		var a answer
		s.take(w, r, "approve", &a, func(in intent) error { return s.approve(in, &a) })
	})
	for route, do := range map[string]func(intent) error{
		"decline":  s.decline,
		"release":  func(in intent) error { return s.Desk.Release(in.ID) },
		"stop":     func(in intent) error { return s.Desk.Stop(in.ID) },
		"stop-all": func(intent) error { s.Desk.StopEverything(); return nil },
		"pause":    func(in intent) error { s.Desk.Pause(in.Until); return nil },
		"resume":   func(intent) error { s.Desk.Resume(); return nil },
		"raise":    s.raise,
		"accept":   s.accept,
		"revoke":   s.revoke,
	} {
		mux.HandleFunc("POST /"+route, func(w http.ResponseWriter, r *http.Request) { s.take(w, r, route, &answer{}, do) })
	}
	return s.outside(mux)
}

// outside refuses what comes from a command that an agent asked for: such a
// command must not approve the next one, nor read what does.
func (s *Server) outside(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := peerOf(r.Context()); p != nil && p.inside {
			s.Tell(fmt.Sprintf("A running tool call tried to use Countersign's own command line (%s, process %d) and was refused.",
				safetext.Clip(strings.TrimPrefix(r.URL.Path, "/"), 20), p.pid))
			write(w, http.StatusForbidden, answer{Error: "refused: this comes from inside a tool call that Countersign runs"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// take reads one intent and carries it out.
func (s *Server) take(w http.ResponseWriter, r *http.Request, route string, a *answer, do func(intent) error) {
	var in intent
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxIntent)).Decode(&in); err != nil {
		write(w, http.StatusBadRequest, answer{Error: "the request could not be read"})
		return
	}
	if err := do(in); err != nil {
		write(w, http.StatusConflict, answer{Error: err.Error()})
		return
	}
	s.Log.Info("intent from the command line", "intent", route, "hold", int64(in.ID))
	write(w, http.StatusOK, a)
}

// maxIntent bounds an intent: an item's content as the operator changed it.
const maxIntent = 16 << 20

func (s *Server) approve(in intent, a *answer) error {
	digest, err := s.digest(in)
	if err != nil {
		return err
	}
	switch {
	case in.Session:
		return s.Desk.ApproveForSession(in.ID, digest, ByCommandLine+", for the session")
	case in.Reads != "":
		return s.Desk.AllowReads(in.ID, digest, in.Reads, readsFor, ByCommandLine+", reads below it too")
	case in.Edited != nil:
		return s.Desk.ApproveEdited(in.ID, digest, in.Edited, ByCommandLine)
	case in.Always:
		return s.always(in.ID, digest, a)
	}
	return s.Desk.Approve(in.ID, digest, ByCommandLine)
}

// always adds the narrow rule for an item and approves it, unless the rule was
// quicker.
func (s *Server) always(id worker.HoldID, digest string, a *answer) (err error) {
	if s.Rules == nil {
		return errNoRules
	}
	if a.Rule, err = s.Desk.NarrowRule(id); err != nil {
		return err
	}
	if err := s.Rules.Add(id, a.Rule); err != nil {
		return err
	}
	if err := s.Desk.Approve(id, digest, ByCommandLine+", always"); !errors.Is(err, worker.ErrDecided) {
		return err
	}
	return nil
}

// preview looks at the disk for an item that waits.
func (s *Server) preview(w http.ResponseWriter, r *http.Request) {
	var in intent
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&in); err != nil {
		write(w, http.StatusBadRequest, answer{Error: "the request could not be read"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	p, err := s.Desk.Preview(ctx, in.ID)
	if err != nil {
		write(w, http.StatusConflict, answer{Error: err.Error()})
		return
	}
	write(w, http.StatusOK, p)
}

var errNoRules = errors.New("the Countersign that is running has no rules")

// accept puts a changed rule file into force; the code says which.
func (s *Server) accept(in intent) error {
	if s.Rules == nil {
		return errNoRules
	}
	return s.Rules.Accept(strings.ToLower(strings.TrimSpace(in.Code)))
}

func (s *Server) revoke(in intent) error {
	for _, g := range s.Desk.Grants() {
		if in.Grant != "" && g.ID == in.Grant {
			return s.Desk.Revoke(g.ID)
		}
	}
	return errors.New("there is no grant of this name; it may have ended")
}

// digest turns the code that was typed into the digest it stands for.
func (s *Server) digest(in intent) (string, error) {
	v, ok := Status{Snapshot: s.Desk.Snapshot()}.Find(in.ID)
	if !ok {
		return "", worker.ErrNoHold
	}
	code := strings.ToLower(strings.TrimSpace(in.Code))
	if len(code) < policy.CodeLength || !strings.HasPrefix(v.Digest, code) {
		return "", fmt.Errorf("the code does not belong to what item %d asks now; look at it again: countersign show %d", in.ID, in.ID)
	}
	return v.Digest, nil
}

// decline needs no code: declining runs nothing.
func (s *Server) decline(in intent) error {
	v, ok := Status{Snapshot: s.Desk.Snapshot()}.Find(in.ID)
	if !ok {
		return worker.ErrNoHold
	}
	return s.Desk.Decline(in.ID, v.Digest, in.Message, ByCommandLine)
}

func (s *Server) raise(intent) error {
	if s.Raise == nil {
		return errors.New("the Countersign that is running has no window")
	}
	s.Raise()
	return nil
}

func write(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer could not be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that is gone needs no answer
}

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	if p, ok := c.(*peerConn); ok {
		return context.WithValue(ctx, peerKey{}, p)
	}
	return ctx
}

func peerOf(ctx context.Context) *peerConn {
	p, _ := ctx.Value(peerKey{}).(*peerConn)
	return p
}
