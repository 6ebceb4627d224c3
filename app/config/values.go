package config

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"countersign/worker/api"
)

// setter takes one value over, or says what it expected. A reported error was
// already added to the reader.
type setter func(any) error

func text(to *string, what string, most int) setter {
	return func(v any) error {
		s, _ := v.(string)
		*to = s
		return OneLine(s, what, most)
	}
}

// directory takes a path that does not depend on where Countersign is started.
func directory(to *string) setter {
	return func(v any) error {
		s, _ := v.(string)
		*to = s
		if err := OneLine(s, "the path of a directory", 4096); err != nil {
			return err
		}
		if !filepath.IsAbs(s) && !strings.HasPrefix(s, "~/") {
			return errors.New("expected an absolute path, or one that begins with ~/")
		}
		return nil
	}
}

func origin(to *string) setter {
	return func(v any) (err error) {
		s, _ := v.(string)
		*to, err = api.ParseOrigin(s)
		return err
	}
}

func integer(to *int, low, high int) setter {
	return func(v any) error {
		n, ok := v.(int64)
		if !ok || n < int64(low) || n > int64(high) {
			return IntWithin(low-1, low, high)
		}
		*to = int(n)
		return nil
	}
}

func milliseconds(to *time.Duration, low, high int) setter {
	return func(v any) error {
		var n int
		if err := integer(&n, low, high)(v); err != nil {
			return fmt.Errorf("%w of milliseconds", err)
		}
		*to = time.Duration(n) * time.Millisecond
		return nil
	}
}

func duration(to *time.Duration, low, high time.Duration) setter {
	return func(v any) error {
		s, _ := v.(string)
		d, err := time.ParseDuration(s)
		if err != nil {
			return DurationWithin(low-1, low, high)
		}
		if err := DurationWithin(d, low, high); err != nil {
			return err
		}
		*to = d
		return nil
	}
}

func choice(to *string, of ...string) setter {
	return func(v any) error {
		s, _ := v.(string)
		if !slices.Contains(of, s) {
			return fmt.Errorf("expected one of %s", strings.Join(of, ", "))
		}
		*to = s
		return nil
	}
}

func level(to *slog.Level) setter {
	return func(v any) error {
		s, _ := v.(string)
		l, err := ParseLevel(s)
		*to = l
		return err
	}
}

// ParseLevel reads a log level. The error says what is expected.
func ParseLevel(s string) (slog.Level, error) {
	switch s {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, errors.New("expected one of debug, info, warn, error")
}

func boolean(to *bool) setter {
	return func(v any) error {
		b, ok := v.(bool)
		if !ok {
			return errors.New("expected true or false")
		}
		*to = b
		return nil
	}
}

// places takes directories whose meaning does not depend on where we are.
func places(to *[]string) setter {
	return list(to, `expected a list of absolute paths, such as ["/srv/cache", "~/.cache/tool"]`, func(s string) bool {
		return filepath.IsAbs(s) || strings.HasPrefix(s, "~/")
	})
}

// presets takes names of cache presets.
func presets(to *[]string) setter {
	return list(to, `expected a list of "go", "node", "python"`, func(s string) bool {
		return s == "go" || s == "node" || s == "python"
	})
}

// names reads variable names, each of which may end in one "*".
func names(to *[]string) setter {
	return list(to, `expected a list of variable names, such as ["AWS_PROFILE", "MY_*"]`, func(s string) bool {
		return s != "" && s != "*" && !strings.ContainsAny(strings.TrimSuffix(s, "*"), "*= \t\r\n\x00")
	})
}

// list takes texts that each are as expected.
func list(to *[]string, expected string, good func(string) bool) setter {
	return func(v any) error {
		values, ok := v.([]any)
		if !ok {
			return errors.New(expected)
		}
		for _, v := range values {
			s, isText := v.(string)
			if !isText || !good(s) {
				return errors.New(expected)
			}
			*to = append(*to, s)
		}
		return nil
	}
}
