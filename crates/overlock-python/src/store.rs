//! Opens stores.

use std::sync::Arc;

use overlock_store::{Access, AddressError, Store, StoreAddress, StoreError};

use crate::error::Raise;

/// The store at an address: a file, `sqlite://FILE` or `postgres://…`.
pub(crate) fn open(address: &str, access: Access) -> Result<Arc<dyn Store>, Raise> {
    let address = if address.contains("://") {
        let address = address.parse();
        address.map_err(|error: AddressError| Raise::bad_request("store", error.to_string()))?
    } else {
        StoreAddress::Sqlite(address.into())
    };
    overlock_store::open(&address, access).map_err(|error| failed(&error))
}

/// The exception for a failed store.
pub(crate) fn failed(error: &StoreError) -> Raise {
    Raise::bad_request("store", error.to_string())
}
