package policy

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"countersign/worker/api/wire"
	"countersign/worker/execute"
)

// Risk is a mark on an item that helps the eye. It decides nothing: an item
// without marks is not harmless (APPROVALS.md, "What the operator sees").
type Risk struct {
	Mark   Mark   `json:"mark"`
	Reason string `json:"reason"` // names what it was found in: untrusted
}

// Mark is a kind of risk.
type Mark string

// The marks.
const (
	MarkRoot        Mark = "acts as another user"
	MarkRemoval     Mark = "removes whole directories"
	MarkDownload    Mark = "runs what it downloads"
	MarkRedirection Mark = "writes to a file"
	MarkCredentials Mark = "touches credentials"
	MarkGit         Mark = "changes what git runs"
	MarkDevice      Mark = "touches a disk"
	MarkOurselves   Mark = "acts on Countersign"
	MarkHidden      Mark = "cannot be understood"
)

// Risks returns the marks of an item, each at most once, in the order in which
// they are found.
func Risks(t execute.Task) []Risk {
	m := marker{}
	switch t.Kind {
	case wire.KindExec:
		m.command(t.Command, t.Env)
	case wire.KindRead, wire.KindWrite, wire.KindList:
		m.path(t.Path, t.Kind == wire.KindWrite)
	}
	return m.risks()
}

// marker collects marks, each with what it was found in.
type marker struct{ marks []marked }

type marked struct {
	mark Mark
	says []saying // few
}

// saying is a reason for a mark, and the names it is about: the first few, and how
// many there are.
type saying struct {
	words string
	first []string
	seen  map[string]bool
}

// maxSaid bounds how many reasons of a mark are told, and how many names of each.
const maxSaid = 4

// mark notes a reason for a mark, and the name that it is about.
func (m *marker) mark(mark Mark, words string, names ...string) {
	at := slices.IndexFunc(m.marks, func(k marked) bool { return k.mark == mark })
	if at < 0 {
		at, m.marks = len(m.marks), append(m.marks, marked{mark: mark})
	}
	k := &m.marks[at]
	i := slices.IndexFunc(k.says, func(s saying) bool { return s.words == words })
	if i < 0 {
		if len(k.says) == maxSaid {
			return
		}
		i, k.says = len(k.says), append(k.says, saying{words: words, seen: map[string]bool{}})
	}
	s := &k.says[i]
	for _, name := range names {
		if !s.seen[name] && len(s.first) < maxSaid {
			s.first = append(s.first, strconv.Quote(name))
		}
		s.seen[name] = true
	}
}

func (m *marker) risks() (risks []Risk) {
	for _, k := range m.marks {
		var reasons []string
		for _, s := range k.says {
			reasons = append(reasons, s.text())
		}
		risks = append(risks, Risk{k.mark, strings.Join(reasons, "; ")})
	}
	return risks
}

func (s saying) text() string {
	text := strings.TrimRight(s.words+" "+strings.Join(s.first, ", "), " ")
	if more := len(s.seen) - len(s.first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (m *marker) command(command string, env map[string]string) {
	s := understand(command)
	if s.why != "" {
		m.mark(MarkHidden, s.why)
	}
	home, _ := os.UserHomeDir()
	all := search(command, s, home, env)
	downloads := false
	for _, f := range all {
		for _, name := range f.into {
			if name != "/dev/null" {
				m.mark(MarkRedirection, "it writes to", name)
			}
		}
		for _, w := range f.writes {
			m.path(w.text, true)
		}
		for i, w := range f.words {
			m.path(w.text, true)
			if i == 0 || f.wrapped {
				m.program(base(w.text), f.words[i+1:])
				downloads = downloads || downloaders[base(w.text)]
			}
		}
	}
	if downloads && runsText(s, all) {
		m.mark(MarkDownload, "a download is handed to something that runs it")
	}
}

var (
	downloaders = setOf("curl wget fetch aria2c http https nc ncat socat scp ftp")
	becomes     = setOf("sudo doas su pkexec run0 runuser setpriv")
	disks       = setOf("mkfs fdisk sfdisk gdisk parted wipefs blkdiscard mkswap swapoff lvremove vgremove pvremove cryptsetup losetup badblocks hdparm")
)

// runsText reports whether a command has an interpreter in it that takes its
// program from a pipe or from a substitution.
func runsText(s script, all []found) bool {
	for i, p := range s.parts {
		if s.why == "" && p.op == "|" && i > 0 && len(p.words) > 0 {
			for _, w := range p.words {
				if k := wrapperKind(base(w)); k == "any" || runsCode[strings.TrimRight(base(w), "0123456789.")] {
					return true
				}
			}
		}
	}
	if s.why == "" {
		return false
	}
	for _, f := range all {
		if len(f.words) > 0 && runsCode[strings.TrimRight(base(f.words[0].text), "0123456789.")] || len(f.words) > 0 && (f.words[0].text == "eval" || f.words[0].text == "source" || f.words[0].text == ".") {
			return true
		}
	}
	return false
}

func (m *marker) program(name string, args []loose) {
	switch {
	case becomes[name]:
		m.mark(MarkRoot, "it uses "+name)
	case name == "rm" && hasOption(args, "rR", "--recursive"),
		name == "find" && hasOption(args, "", "-delete"),
		name == "git" && len(args) > 0 && args[0].text == "clean":
		m.mark(MarkRemoval, "it uses "+name+" to remove what is below a directory")
	case disks[name] || strings.HasPrefix(name, "mkfs."):
		m.mark(MarkDevice, "it uses "+name)
	case name == "countersign":
		m.mark(MarkOurselves, "it runs countersign")
	case name == "tee" || name == "dd" && hasPrefix(args, "of="):
		m.mark(MarkRedirection, "it uses "+name+" to write")
	case name == "git" && len(args) > 0 && (args[0].text == "config" || args[0].text == "-c"):
		m.mark(MarkGit, "it sets the configuration of git")
	}
}

// hasOption reports whether one of the letters is among the short options, or
// the long option or its abbreviation occurs.
func hasOption(args []loose, letters, long string) bool {
	for _, a := range args {
		t := a.text
		switch {
		case t == "--":
			return false
		case t == long, strings.HasPrefix(t, "--") && len(t) > 3 && strings.HasPrefix(long, t):
			return true
		case len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.ContainsAny(t[1:], letters):
			return true
		}
	}
	return false
}

func hasPrefix(args []loose, prefix string) bool {
	for _, a := range args {
		if strings.HasPrefix(a.text, prefix) {
			return true
		}
	}
	return false
}

// Names of files and directories that hold credentials; ones that begin with *
// are endings, ones that end with * beginnings.
var credentials = []string{".ssh", ".gnupg", ".aws", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".env", ".env.*",
	".git-credentials", "id_rsa*", "id_ed25519*", "id_ecdsa*", "id_dsa*", "*.pem", "*.key", "*.p12", "*.pfx", "*.kdbx", "*.keystore", ".password-store",
	"credentials", "credentials.json", "shadow", "keyrings", ".vault-token", ".my.cnf", ".htpasswd", "secrets.y*ml", "gcloud", ".terraform.d"}

func (m *marker) path(word string, writes bool) {
	if at := strings.IndexByte(word, '='); at >= 0 {
		word = word[at+1:]
	}
	if strings.HasPrefix(word, "/dev/") && isDisk(word[len("/dev/"):]) {
		m.mark(MarkDevice, "it names the device", word)
	}
	git := false
	for name := range strings.SplitSeq(word, "/") {
		for _, c := range credentials {
			if ok, _ := path.Match(c, strings.ToLower(name)); ok && name != "" {
				m.mark(MarkCredentials, "it names", word)
			}
		}
		git = git || strings.EqualFold(name, ".git")
	}
	if writes && (git || strings.HasSuffix(word, ".gitconfig") || strings.HasSuffix(word, ".gitattributes") || strings.Contains(word, ".githooks")) {
		m.mark(MarkGit, "it names", word)
	}
}

func isDisk(name string) bool {
	for _, p := range []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "mapper/", "dm-", "md", "loop", "mem", "kmem", "port", "rdisk"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
