pub(crate) const PLACEHOLDER: () = ();
