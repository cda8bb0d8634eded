//! Addresses of stores.

use std::fmt::{self, Debug, Display, Formatter, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// A file, `sqlite://FILE`.
    Sqlite(PathBuf),
    /// A database, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`.
    Postgres(Box<PostgresAddress>),
}

/// The address of a store in `PostgreSQL`. Neither `Display` nor `Debug` shows the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresAddress {
    /// The user name.
    pub user: String,
    /// The password; if there is none, the variable `PGPASSWORD` is used.
    pub password: Option<Password>,
    /// The host name or IP address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The database.
    pub database: String,
    /// The schema with the tables, `?schema=NAME`. Only lower case letters, digits and underscores.
    pub schema: String,
    /// Whether the connection is encrypted, `?sslmode=…`.
    pub encryption: Encryption,
    /// Root certificates to trust in addition to those of the system, `?sslrootcert=FILE`.
    pub root_certificate: Option<PathBuf>,
    /// The timeout for connecting, `?connect_timeout=SECONDS`.
    pub connect_timeout: Duration,
}

/// Whether the connection to a server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Not encrypted.
    Disable,
    /// Encrypted if the server supports it. Its certificate is not verified.
    Prefer,
    /// Encrypted, with a valid certificate for the name of the server.
    Require,
}

impl Encryption {
    const ALL: [Self; 3] = [Self::Disable, Self::Prefer, Self::Require];

    fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
        }
    }
}

/// A password. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl Debug for Password {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(HIDDEN)
    }
}

/// Shown in place of a password.
const HIDDEN: &str = "…";

const PORT: u16 = 5432;
const SCHEMA: &str = "overlock";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest identifier of `PostgreSQL`.
const LONGEST_NAME: usize = 63;

/// A text that is not the address of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{address}` is not the address of a store: {}it should look like `sqlite://runs.db`, `sqlite:///var/lib/overlock/runs.db` or `postgres://user:password@host:5432/database`",
    reason.as_ref().map(|reason| format!("{reason}; ")).unwrap_or_default()
)]
pub struct AddressError {
    /// The address, without what may be a password.
    pub address: String,
    /// What is wrong with it, if this is known.
    pub reason: Option<String>,
}

impl FromStr for StoreAddress {
    type Err = AddressError;

    fn from_str(address: &str) -> Result<Self, AddressError> {
        let wrong = |reason| AddressError {
            address: without_password(address),
            reason,
        };
        if let Some(file) = address.strip_prefix("sqlite://") {
            // SQLite reads these as a database in memory or as a URI.
            let is_file = !file.is_empty() && file != ":memory:" && !file.starts_with("file:");
            if has_password(file) {
                return Err(wrong(Some("a file has no user and no password".to_owned())));
            }
            let file = is_file.then(|| Self::Sqlite(PathBuf::from(file)));
            return file.ok_or_else(|| wrong(None));
        }
        let postgres = address
            .strip_prefix("postgres://")
            .or_else(|| address.strip_prefix("postgresql://"));
        let Some(rest) = postgres else {
            return Err(wrong(None));
        };
        let read = PostgresAddress::read(rest).map_err(|reason| wrong(Some(reason)))?;
        Ok(Self::Postgres(Box::new(read)))
    }
}

impl PostgresAddress {
    /// Reads what follows the scheme. The error message does not contain the password.
    fn read(rest: &str) -> Result<Self, String> {
        // The user and the password end at the last `@`: a password with an unencoded `/` or `?` must
        // not become a part that is shown.
        let (credentials, location) = rest.rsplit_once('@').ok_or("it names no user")?;
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password)?)),
            None => (credentials, None),
        };
        let (location, parameters) = location.split_once('?').unwrap_or((location, ""));
        let (server, database) = location.split_once('/').ok_or("it names no database")?;
        let (host, port) = host_and_port(server)?;
        let mut address = Self {
            user: decoded(user)?,
            password: password.map(Password),
            host,
            port,
            database: decoded(database)?,
            schema: SCHEMA.to_owned(),
            encryption: Encryption::Prefer,
            root_certificate: None,
            connect_timeout: CONNECT_TIMEOUT,
        };
        if address.user.is_empty() {
            return Err("it names no user".into());
        }
        if address.database.is_empty() {
            return Err("it names no database".into());
        }
        for parameter in parameters.split('&').filter(|one| !one.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            address.set(name, decoded(value)?)?;
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "schema" if is_schema(&value) => self.schema = value,
            "schema" => {
                return Err(format!(
                    "`schema` must have from 1 to {LONGEST_NAME} lower case letters, digits and underscores"
                ));
            }
            "sslmode" => {
                let mut known = Encryption::ALL.into_iter();
                let known = known.find(|encryption| encryption.as_str() == value);
                self.encryption =
                    known.ok_or("`sslmode` must be `disable`, `prefer` or `require`")?;
            }
            "sslrootcert" => self.root_certificate = Some(PathBuf::from(value)),
            "connect_timeout" => {
                let seconds = value
                    .parse()
                    .ok()
                    .filter(|seconds| (1..=3600).contains(seconds));
                let seconds = seconds.ok_or("`connect_timeout` must be from 1 to 3600 seconds")?;
                self.connect_timeout = Duration::from_secs(seconds);
            }
            _ => {
                return Err(
                    "after `?` there may be `schema`, `sslmode`, `sslrootcert` and `connect_timeout`"
                        .into(),
                );
            }
        }
        Ok(())
    }
}

fn host_and_port(server: &str) -> Result<(String, u16), String> {
    let (host, port) = match server.strip_prefix('[') {
        // An IPv6 address contains colons.
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']').ok_or("a `]` is missing")?;
            (host, rest.strip_prefix(':'))
        }
        None => match server.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (server, None),
        },
    };
    if host.is_empty() {
        return Err("it names no host".into());
    }
    let port = match port {
        None | Some("") => PORT,
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or("the port must be a number from 1 to 65535")?,
    };
    Ok((decoded(host)?, port))
}

fn is_schema(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let starts = name.bytes().next().is_some_and(is_letter);
    // Names that begin with `pg_` are reserved.
    starts
        && name.len() <= LONGEST_NAME
        && !name.starts_with("pg_")
        && name
            .bytes()
            .all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// Decodes percent signs in a part of an address.
fn decoded(text: &str) -> Result<String, String> {
    let wrong = "a `%` must be followed by two hexadecimal digits that encode UTF-8";
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || {
            let digit = char::from(rest.next()?).to_digit(16)?;
            u8::try_from(digit).ok()
        };
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(wrong.into());
        };
        bytes.push(high << 4 | low);
    }
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(wrong.into()),
    }
}

/// Encodes a part of an address with percent signs.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}"); // writing to a string cannot fail
        }
        encoded
    })
}

/// An address, valid or not, without its password.
fn without_password(address: &str) -> String {
    if let Some(file) = address.strip_prefix("sqlite://")
        && !has_password(file)
    {
        return address.to_owned();
    }
    // The format of libpq: `host=… password=…`.
    if !address.contains("://") && address.contains('=') {
        return HIDDEN.to_owned();
    }
    let scheme = address.split("://").next().unwrap_or_default();
    // Anything else before `://` may be a user name followed by a password that begins with slashes.
    let is_known = ["sqlite", "postgres"]
        .iter()
        .any(|it| scheme.starts_with(it));
    let is_scheme =
        is_known && scheme != address && scheme.bytes().all(|it| it.is_ascii_lowercase());
    let (scheme, rest) = address.split_at(if is_scheme { scheme.len() + 3 } else { 0 });
    // The part after the last `@` is shown without its parameters, which may contain a password too.
    let (credentials, location) = match rest.rsplit_once('@') {
        Some((credentials, location)) => (credentials, format!("@{location}")),
        None => (rest, String::new()),
    };
    let location = location.split('?').next().unwrap_or_default();
    let credentials = match credentials.split_once(':') {
        Some((user, _)) => format!("{user}:{HIDDEN}"),
        None => credentials.split('?').next().unwrap_or_default().to_owned(),
    };
    format!("{scheme}{credentials}{location}")
}

/// Whether the path of a file begins with `user:password@`.
fn has_password(file: &str) -> bool {
    let first = file.split('/').next().unwrap_or_default();
    let credentials = first.split_once('@').map(|(credentials, _)| credentials);
    credentials.is_some_and(|credentials| credentials.contains(':'))
}

impl Display for StoreAddress {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => write!(formatter, "sqlite://{}", file.display()),
            Self::Postgres(address) => Display::fmt(address, formatter),
        }
    }
}

/// The address without the password.
impl Display for PostgresAddress {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            encoded(&self.host)
        };
        let (user, database) = (encoded(&self.user), encoded(&self.database));
        write!(
            formatter,
            "postgres://{user}@{host}:{}/{database}",
            self.port
        )?;
        let mut sign = '?';
        let mut parameter = |name, value: &str| {
            write!(formatter, "{sign}{name}={}", encoded(value))?;
            sign = '&';
            Ok(())
        };
        if self.schema != SCHEMA {
            parameter("schema", &self.schema)?;
        }
        if self.encryption != Encryption::Prefer {
            parameter("sslmode", self.encryption.as_str())?;
        }
        if let Some(file) = &self.root_certificate {
            parameter("sslrootcert", &file.to_string_lossy())?;
        }
        if self.connect_timeout != CONNECT_TIMEOUT {
            parameter(
                "connect_timeout",
                &self.connect_timeout.as_secs().to_string(),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parses_what_it_displays() {
        for address in [
            "sqlite://runs.db",
            "sqlite:///var/lib/runs.db",
            "sqlite://a b/ü.db",
            "postgres://me@db.example:5433/runs",
            "postgres://me@[::1]:5432/a%20b",
            "postgres://a%40b@127.0.0.1:5432/runs?schema=mine&sslmode=require&sslrootcert=%2Fetc%2Fca.pem&connect_timeout=3",
        ] {
            let read: StoreAddress = address.parse().expect("it is an address");
            assert_eq!(read.to_string(), address);
        }
    }

    #[test]
    fn parses_all_parts_of_an_address() {
        let address = "postgresql://me:p%2Fq%3A@db/runs?sslmode=disable";
        let read: StoreAddress = address.parse().expect("it is an address");
        let expected = PostgresAddress {
            user: "me".into(),
            password: Some(Password("p/q:".into())),
            host: "db".into(),
            port: 5432,
            database: "runs".into(),
            schema: "overlock".into(),
            encryption: Encryption::Disable,
            root_certificate: None,
            connect_timeout: Duration::from_secs(10),
        };
        assert_eq!(read, StoreAddress::Postgres(Box::new(expected)));
    }

    #[test]
    fn rejects_other_texts() {
        for address in [
            "",
            "runs.db",
            "sqlite://",
            "mysql://x",
            "sqlite://:memory:",
            "sqlite://file:x?mode=memory",
            "postgres://",
            "postgres://db/runs",
            "postgres://me@db",
            "postgres://me@db/",
            "postgres://@db/runs",
            "postgres://me@:5432/runs",
            "postgres://me@db:0/runs",
            "postgres://me@db:many/runs",
            "postgres://me@[::1/runs",
            "postgres://me%4@db/runs",
            "postgres://me@db/runs?sslmode=maybe",
            "postgres://me@db/runs?schema=A%22B",
            "postgres://me@db/runs?schema=pg_catalog",
            "postgres://me@db/runs?connect_timeout=0",
            "postgres://me@db/runs?host=elsewhere",
        ] {
            let error = address
                .parse::<StoreAddress>()
                .expect_err("not an address")
                .to_string();
            assert!(error.contains("sqlite://"), "{error}");
            assert!(error.contains("postgres://user:password@host"), "{error}");
        }
    }

    #[test]
    fn the_error_names_the_missing_part() {
        let error = "postgres://me:secret@db".parse::<StoreAddress>();
        let error = error.expect_err("not an address").to_string();
        assert!(
            error.starts_with(
                "`postgres://me:…@db` is not the address of a store: it names no database; "
            ),
            "{error}"
        );
    }

    proptest! {
        /// Neither a valid address nor an error shows the password.
        #[test]
        fn a_password_is_never_shown(
            scheme in "postgres(ql)?://|mysql://|postgres:|",
            password in "[ -~]{0,8}KoZ8w[ -~é]{0,8}",
            location in "(@[a-z]{1,5}(:[0-9]{1,6})?)?(/[a-z]{0,5})?(\\?(sslmode|password)=[a-z]{1,5})?",
        ) {
            // Otherwise the part of the password after its `@` reads as the host.
            prop_assume!(location.starts_with('@') || !password.contains('@'));
            let address = format!("{scheme}me:{password}{location}");
            let shown = match address.parse::<StoreAddress>() {
                Ok(read) => format!("{read} {read:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            prop_assert!(!shown.contains("KoZ8w"), "{shown}");
        }
    }

    #[test]
    fn a_password_in_an_unknown_format_is_not_shown() {
        for address in [
            "host=h password=SECRET",
            "Host=h;Password=SECRET",
            "sqlite://u:SECRET@h/d",
            "mysql://u:SECRET@h/d",
        ] {
            let error = address.parse::<StoreAddress>().expect_err("not an address");
            assert!(!error.to_string().contains("SECRET"), "{error}");
            assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
        }
        let odd: StoreAddress = "sqlite:///data/a@b:c.db".parse().expect("it is a file");
        assert_eq!(odd.to_string(), "sqlite:///data/a@b:c.db");
    }
}
