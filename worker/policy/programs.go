package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

func setOf(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

// shellOnly names builtins and reserved words that change what the shell does
// next, or that only it can run: always asked for. cd is understood where it
// leads a command.
var shellOnly = setOf(`export set unset trap alias unalias hash read exec eval . source
	let declare typeset local readonly builtin enable shopt getopts mapfile readarray
	return break continue shift bind complete compgen compopt history fc pushd popd dirs
	disown suspend logout caller coproc function select wait times ulimit umask jobs fg bg chdir
	if then else elif fi for while until do done case esac in ! { } [[ ]] cd`)

// wrappers run what their arguments name. The value says where to look: in
// every word ("any"), in words that are code ("code"), or after some words.
var wrappers = func() map[string]string {
	m := map[string]string{"git": "git", "find": "find", "fd": "fd", "fdfind": "fd", "rg": "rg"}
	for name := range setOf(`sudo doas nohup time timeout gtimeout nice ionice chrt xargs parallel command builtin exec env setsid stdbuf
		chroot unshare nsenter flock watch strace ltrace gdb ssh su runuser script docker podman nerdctl busybox toybox
		entr caffeinate systemd-run fakeroot proot taskset numactl prlimit setpriv valgrind perf rlwrap npx bunx pnpx uvx pipx
		sh bash dash zsh ksh mksh ash fish csh tcsh eval unbuffer expect screen tmux at batch cmd wsl pkexec run0 hyperfine
		firejail bwrap dbus-run-session xvfb-run cgexec direnv nix nix-shell mise asdf rbenv pyenv sg newgrp chpst setarch linux32 linux64 dotenv op
		kubectl oc vagrant ansible mosh rsh trap coproc logsave`) {
		m[name] = "any"
	}
	for name := range setOf(`awk gawk mawk nawk sed gsed tar bsdtar gtar python pypy perl ruby node nodejs deno bun php lua luajit tclsh osascript
		vi vim nvim ex ed emacs make gmake rsync zip man less more m4 gcc g++ cc clang ld jq r rscript julia ghci guile sqlite3 mysql psql
		sort split cpio dd socat nc ncat curl wget rpm dpkg apt apt-get pip npm yarn pnpm cargo go gradle mvn pwsh powershell`) {
		m[name] = "code"
	}
	return m
}()

// base is a program's name without its directory and version.
func base(word string) string { return strings.TrimSuffix(path.Base(word), ".exe") }

func wrapperKind(name string) string {
	if k, ok := wrappers[name]; ok {
		return k
	}
	return wrappers[strings.TrimRight(name, "0123456789.")]
}

// writers are programs whose arguments name files that they write or remove.
var writers = setOf(`tee dd cp mv install ln link rm rmdir unlink shred truncate touch chmod chown chgrp chattr setfacl
	rsync scp sed gsed perl tar unzip 7z cpio patch ed ex vi vim nvim nano emacs split csplit sqlite3 mkdir mktemp mkfifo mknod wget curl sort git python node ruby
	gzip gunzip bzip2 bunzip2 xz unxz lzma zstd unzstd lz4 compress uncompress pigz openssl gpg age zip rar bsdtar gtar pax
	sponge gcc g++ cc clang ld strip objcopy dos2unix unix2dos aria2c ffmpeg rename`)

// runsCode names programs that execute what is in the work directory, or what
// they are told to: allowing them needs runs-code.
var runsCode = setOf(`make gmake ninja cmake ctest meson bazel buck scons rake just task tox nox invoke pre-commit
	npm npx pnpm pnpx yarn bun bunx deno node nodejs tsx ts-node jest vitest mocha eslint prettier webpack vite rollup tsc gulp grunt
	python pypy pytest ipython uv uvx pip pipx poetry pdm hatch mypy pylint
	ruby rake bundle rspec gem rails perl prove php composer phpunit lua luajit tclsh julia r rscript guile
	java javac kotlin kotlinc scala sbt gradle gradlew mvn ant lein groovy dotnet msbuild swift xcodebuild
	cargo rustc rustup gcc g++ cc c++ clang clang++ ld zig ghc cabal stack elixir mix erl rebar3
	sh bash dash zsh ksh mksh ash fish csh tcsh
	awk gawk mawk nawk m4 jshell sqlite3 psql mysql gdb lldb vi vim nvim ex ed emacs nano man less more
	golangci-lint staticcheck govulncheck air mage ginkgo gotestsum terraform ansible ansible-playbook vagrant docker-compose`)

// freeVerbs are the subcommands of programs that run code only with others.
var freeVerbs = map[string]map[string]bool{
	"go": setOf("version env doc help"),
	"git": setOf(`status diff log show blame annotate branch rev-parse ls-files ls-tree remote describe shortlog grep cat-file
		rev-list tag reflog name-rev merge-base show-ref for-each-ref check-ignore count-objects whatchanged diff-tree diff-index diff-files version help`),
}

// runningOptions make programs run or write what they are given, by program; ""
// is for any. A * stands for any ending.
var runningOptions = map[string][]string{
	"git":   {"--ext-diff", "--textconv", "-O*", "--open-files-in-pager*", "--output*", "--upload-pack*", "--receive-pack*"},
	"find":  {"-exec*", "-ok*", "-delete", "-fprint*", "-fls"},
	"fd":    {"-x", "-X", "--exec*"},
	"rg":    {"--pre*", "--hostname-bin*", "-z", "--search-zip"},
	"sed":   {"-i*", "--in-place*", "-f*", "--file*", "-e*", "--expression*", "-s"},
	"tar":   {"--checkpoint-action*", "-I*", "--use-compress-program*", "--to-command*", "-F*", "--info-script*", "--new-volume-script*", "--rsh-command*", "--rmt-command*", "-x*", "--extract*", "-P"},
	"sort":  {"--compress-program*", "-o*", "--output*", "-T*"},
	"go":    {"-exec*", "-toolexec*", "-vettool*", "-overlay*", "-w", "-u"},
	"split": {"--filter*"},
	"file":  {"-C", "--compile", "-m*"},
	"date":  {"-s*", "--set*"},
	"env":   {"-S*", "--split-string*"},
	"ssh":   {"-o*", "-F*"},
	"diff":  {"--to-file*", "--from-file*"},
	"tree":  {"-o*"},
	"gofmt": {"-w", "-r"},
	"jq":    {"-f*", "--from-file*", "-L*"},
	"curl":  {"-o*", "-O*", "--output*", "-K*", "--config*"},
	"test":  {"-v", "-R"},
	"[":     {"-v", "-R"},
	"wget":  {"-O*", "--use-askpass*", "-P*"},
}

// gitOwn are options of git itself, before its subcommand.
var gitOwn = []string{"-c", "--config-env*", "--exec-path*", "-C", "--git-dir*", "--work-tree*", "--namespace*", "--super-prefix*"}

// checkRuns refuses a pattern that lets code run without saying so.
func (p *pattern) checkRuns() error {
	name := p.program
	first := ""
	if len(p.items) > 0 && p.items[0].value == nothing {
		first = p.items[0].prefix
	}
	if verbs, ok := freeVerbs[name]; ok {
		if !verbs[first] {
			return fmt.Errorf("can run what is in the work directory; the rule needs runs-code = true")
		}
	} else if stem := strings.TrimRight(name, "0123456789."); runsCode[name] || runsCode[stem] && stem != "" {
		return fmt.Errorf("runs what is in the work directory, or what it is told to; the rule needs runs-code = true")
	}
	if wrappers[name] == "any" {
		return errors.New("runs the command in its arguments; the rule needs runs-code = true")
	}
	if name == "printf" {
		return errors.New("can set variables of the shell; the rule needs runs-code = true")
	}
	if name == "sed" || name == "gsed" {
		if len(p.items) == 0 || p.script().value == aWord || p.script().value == aPath || p.script().value == aFile {
			return errors.New("takes a script that can write files and run commands; say <lines>, or the script itself")
		}
	}
	return p.checkOptions()
}

// script is the first item that is not an option.
func (p *pattern) script() slot {
	for _, it := range p.items {
		if it.value != nothing || !strings.HasPrefix(it.prefix, "-") {
			return it
		}
	}
	return slot{}
}

func (p *pattern) checkOptions() error {
	check := func(text string, list []string) error {
		for _, bad := range list {
			prefix, any := strings.CutSuffix(bad, "*")
			if text == prefix || any && strings.HasPrefix(text, prefix) {
				return fmt.Errorf("has the option %s, which runs or writes what it is given; the rule needs runs-code = true", text)
			}
		}
		return nil
	}
	for i, opts := range p.options {
		for _, o := range opts {
			err := check(o.text, runningOptions[p.program])
			if i == 0 && p.program == "git" && err == nil {
				err = check(o.text, gitOwn)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, it := range p.items {
		if err := check(it.prefix, runningOptions[p.program]); err != nil {
			return err
		}
	}
	return nil
}

// starts returns the programs that a pattern is about: its own, and the one that
// a wrapper in it runs.
func (p *pattern) starts() []string {
	names := []string{p.program}
	if wrappers[p.program] != "any" || runsCode[p.program] {
		return names
	}
	for _, it := range p.items {
		if it.value == nothing && !strings.HasPrefix(it.prefix, "-") {
			return append(names, it.prefix)
		}
	}
	return names
}

// checkWrapped refuses, even with runs-code, a wrapper that may run anything.
func (p *pattern) checkWrapped() error {
	if wrappers[p.program] != "any" || runsCode[p.program] {
		return nil
	}
	for _, it := range p.items {
		switch {
		case it.value == aNumber || it.value == nothing && strings.HasPrefix(it.prefix, "-"):
			continue
		case it.value == nothing && !shellOnly[it.prefix]:
			return nil
		}
		break
	}
	return errors.New("would run any command there is; name the one that follows it")
}
