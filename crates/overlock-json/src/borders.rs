//! Computes common prefixes of a sequence and its suffixes.

/// For every position, the length of the common prefix of the sequence and its suffix from there (the
/// Z function). The first entry is the length of the sequence.
pub(crate) fn common_prefixes<T: PartialEq>(sequence: &[T]) -> Vec<usize> {
    let mut lengths = vec![0; sequence.len()];
    if let Some(first) = lengths.first_mut() {
        *first = sequence.len();
    }
    // The match that ends furthest to the right so far.
    let (mut start, mut end) = (0, 0);
    for at in 1..sequence.len() {
        let mut length = if at < end {
            lengths[at - start].min(end - at)
        } else {
            0
        };
        while at + length < sequence.len() && sequence[length] == sequence[at + length] {
            length += 1;
        }
        if at + length > end {
            (start, end) = (at, at + length);
        }
        lengths[at] = length;
    }
    lengths
}
