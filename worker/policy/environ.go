package policy

import (
	"fmt"
	"strings"
)

// neverListed names variables that can change which code runs, or where
// programs read their orders from: no rule can list them. A * at either end
// stands for anything. They are compared in any case.
var neverListed = []string{
	"PATH", "HOME", "PWD", "OLDPWD", "CDPATH", "SHELL", "TMPDIR", "USER", "LOGNAME",
	"LD_*", "DYLD_*", "GLIBC_*", "MALLOC_*", "GCONV_PATH", "LOCPATH", "NLSPATH", "TERMINFO*", "TERMCAP", "POSIXLY_CORRECT",
	"BASH*", "ENV", "IFS", "PS1", "PS2", "PS3", "PS4", "SHELLOPTS", "PROMPT_COMMAND", "ZDOTDIR", "FPATH", "HIST*", "INPUTRC", "GLOBIGNORE", "EXECIGNORE", "FIGNORE", "POSIX*",
	"*FLAGS", "*_OPTIONS", "*_OPTS", "*_ARGS", "*PAGER", "*EDITOR", "VISUAL", "*BROWSER", "*ASKPASS*", "*_WRAPPER", "*_CONFIG_PATH", "*_CONFIG", "*_CONFIG_FILE", "*RC",
	"NODE_*", "NPM_*", "YARN_*", "PNPM_*", "BUN_*", "DENO_*", "COREPACK_*",
	"PYTHON*", "PIP_*", "UV_*", "POETRY_*", "VIRTUAL_ENV", "CONDA_*", "TOX_*", "PYTEST_*",
	"PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "LUA_*", "PHP*", "COMPOSER_*", "JAVA_*", "_JAVA_*", "JDK_*", "CLASSPATH", "MAVEN_*", "GRADLE_*", "ANT_*", "SBT_*",
	"GIT_*", "SSH_*", "GPG_*", "GNUPGHOME", "GH_*", "HG*", "SVN_*", "RSYNC_*",
	"RUSTC*", "RUSTUP_*", "CARGO_*", "RUSTDOC*", "GOROOT", "GOPATH", "GOENV", "GOTOOLCHAIN", "GOPROXY", "GOSUMDB", "GONOSUM*", "GOPRIVATE", "GOINSECURE", "GOVCS", "GOTOOLDIR", "GOCACHEPROG", "GOWORK", "GOBIN", "GOAUTH",
	"CC", "CXX", "CPP", "AR", "AS", "LD", "NM", "FC", "PKG_CONFIG*", "CMAKE_*", "MAKE*", "NINJA_*", "CCACHE_*", "GCC_*", "COMPILER_PATH", "LIBRARY_PATH", "CPATH", "*_INCLUDE_PATH",
	"LESS*", "MORE", "MAN*", "AWKPATH", "AWKLIBPATH", "RIPGREP_*", "FZF_*", "BAT_*", "TAR_*", "GZIP", "BZIP*", "XZ_*", "ZSTD_*",
	"XDG_*", "DBUS_*", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_*", "COMPOSE_*", "KUBE*", "AWS_*", "HELM_*", "TF_*", "ANSIBLE_*", "NIX_*", "GUIX_*",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_*", "CURL_*", "WGETRC", "OPENSSL_*",
	"MANAGED_AGENTS_*", "ANTHROPIC_*", "COUNTERSIGN_*",
}

// mayList says whether a rule may list a variable in env; the error says why
// not.
func mayList(name string) error {
	if name == "" {
		return fmt.Errorf("a variable needs a name")
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; !isAlnum(c) && c != '_' || i == 0 && c >= '0' && c <= '9' {
			return fmt.Errorf("%q is not the name of a variable", name)
		}
	}
	if changesCode(name) {
		return fmt.Errorf("%s can change which code runs; it can never be listed", name)
	}
	return nil
}

// changesCode reports whether a variable is one of neverListed.
func changesCode(name string) bool {
	upper := strings.ToUpper(name)
	for _, p := range neverListed {
		begin, end := strings.HasSuffix(p, "*"), strings.HasPrefix(p, "*")
		p = strings.Trim(p, "*")
		switch {
		case begin && end && strings.Contains(upper, p),
			begin && !end && strings.HasPrefix(upper, p),
			end && !begin && strings.HasSuffix(upper, p),
			upper == p:
			return true
		}
	}
	return false
}
