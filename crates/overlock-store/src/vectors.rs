//! Checks and normalizes vectors.

use crate::error::StoreError;

/// A vector of length 1 in the same direction.
pub(crate) fn unit(model: &str, numbers: usize, vector: &[f32]) -> Result<Vec<f32>, StoreError> {
    let refused = |reason: String| {
        Err(StoreError::InvalidVector {
            model: model.to_owned(),
            reason,
        })
    };
    if vector.len() != numbers {
        let found = vector.len();
        return refused(format!(
            "it has {found} numbers, but the vectors of the model have {numbers}"
        ));
    }
    let squares = vector.iter().map(|number| f64::from(*number).powi(2));
    let length = squares.sum::<f64>().sqrt();
    if !length.is_finite() {
        return refused("one of its numbers is not finite".to_owned());
    }
    if length == 0.0 {
        return refused("all its numbers are zeros".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is at most 1")]
    let unit = |number: &f32| (f64::from(*number) / length) as f32;
    Ok(vector.iter().map(unit).collect())
}
