//! Where is the store?

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// A file, `sqlite://FILE`.
    Sqlite(PathBuf),
}

/// An address that names no store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{address}` is not the address of a store: it should look like `sqlite://runs.db` or `sqlite:///var/lib/overlock/runs.db`"
)]
pub struct AddressError {
    /// The address.
    pub address: String,
}

impl FromStr for StoreAddress {
    type Err = AddressError;

    fn from_str(address: &str) -> Result<Self, AddressError> {
        match address.strip_prefix("sqlite://") {
            // What SQLite reads these as is gone with the process, or is another file.
            Some(file) if !file.is_empty() && file != ":memory:" && !file.starts_with("file:") => {
                Ok(Self::Sqlite(PathBuf::from(file)))
            }
            _ => Err(AddressError {
                address: address.to_owned(),
            }),
        }
    }
}

impl Display for StoreAddress {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => write!(formatter, "sqlite://{}", file.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for address in [
            "sqlite://runs.db",
            "sqlite:///var/lib/runs.db",
            "sqlite://a b/ü.db",
        ] {
            let read: StoreAddress = address.parse().expect("it is an address");
            assert_eq!(read.to_string(), address);
        }
    }

    #[test]
    fn refuses_what_is_no_store() {
        for address in [
            "",
            "runs.db",
            "sqlite://",
            "mysql://x",
            "sqlite://:memory:",
            "sqlite://file:x?mode=memory",
        ] {
            let error = address
                .parse::<StoreAddress>()
                .expect_err("it is no address");
            assert!(error.to_string().contains("sqlite://"), "{error}");
        }
    }
}
