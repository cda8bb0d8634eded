//! Asks a server of OpenAI's embeddings for vectors.

use serde::Deserialize;
use serde_json::json;

use super::address::Endpoint;
use super::response::{LONGEST_ANSWER, error_message};
use super::{Http, retried};
use crate::backend::{BackendError, RetryPolicy};

/// A model that makes vectors of texts, at an address such as `http://127.0.0.1:11434/v1`.
#[derive(Debug)]
pub struct Embeddings {
    http: Http,
    endpoint: Endpoint,
    model: String,
    policy: RetryPolicy,
}

/// An answer, as far as it is read.
#[derive(Deserialize)]
struct Answered {
    data: Vec<Embedded>,
}

#[derive(Deserialize)]
struct Embedded {
    /// The place of its text; servers that leave it out answer in order.
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Embeddings {
    /// The model of this name at a base address, asked with a key if it wants one, and again when
    /// it fails for a reason that may pass.
    pub fn new(
        http: Http,
        base: &str,
        key: Option<&str>,
        model: &str,
        policy: RetryPolicy,
    ) -> Result<Self, BackendError> {
        Ok(Self {
            http,
            endpoint: Endpoint::with_bearer(base, "/embeddings", key)?,
            model: model.to_owned(),
            policy,
        })
    }

    /// Where it is asked, as messages may tell it: without a password.
    pub fn host(&self) -> &str {
        self.endpoint.host()
    }

    /// The vectors of texts, one for each, in their order, all of one length and none without a
    /// direction.
    pub async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BackendError> {
        let body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let body = body.to_string().into_bytes();
        let ask = || self.ask(body.clone(), texts.len());
        retried(&self.policy, None, ask, |_| {}).await
    }

    async fn ask(&self, body: Vec<u8>, count: usize) -> Result<Vec<Vec<f32>>, BackendError> {
        let mut answer = self.http.ask(&self.endpoint, body).await?;
        let body = answer.read_whole(LONGEST_ANSWER).await?;
        let answered: Answered = match serde_json::from_slice(&body) {
            Ok(answered) => answered,
            Err(error) => {
                let told = error_message(&body).unwrap_or_default();
                let told: String = told.chars().take(200).collect();
                return Err(answer.malformed(&format!("{error} in `{told}`")));
            }
        };
        in_order(answered.data, count).map_err(|reason| answer.malformed(&reason))
    }
}

/// The vectors in the order of their texts.
fn in_order(data: Vec<Embedded>, count: usize) -> Result<Vec<Vec<f32>>, String> {
    if data.len() != count {
        return Err(format!(
            "there are {} vectors for {count} texts",
            data.len()
        ));
    }
    let mut vectors = vec![Vec::new(); count];
    for (place, embedded) in data.into_iter().enumerate() {
        let index = embedded.index.unwrap_or(place);
        match vectors.get_mut(index) {
            Some(vector) if vector.is_empty() => *vector = embedded.embedding,
            _ => {
                return Err(format!(
                    "a vector has the index {index}, which no text or another has"
                ));
            }
        }
    }
    let length = vectors.first().map_or(0, Vec::len);
    for (place, vector) in vectors.iter().enumerate() {
        let number = place + 1;
        if vector.is_empty() || vector.len() != length {
            return Err(format!(
                "the vector of text {number} of {count} has {} numbers, the first {length}",
                vector.len()
            ));
        }
        if vector.iter().all(|number| *number == 0.0) {
            return Err(format!(
                "the vector of text {number} of {count} is nothing but zeros, and has no direction"
            ));
        }
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::{Embedded, in_order};

    #[track_caller]
    fn check(given: &[(Option<usize>, &[f32])], count: usize, expected: Result<&[&[f32]], &str>) {
        let data = given.iter().map(|(index, embedding)| Embedded {
            index: *index,
            embedding: embedding.to_vec(),
        });
        let found = in_order(data.collect(), count);
        let expected =
            expected.map(|vectors| vectors.iter().map(|vector| vector.to_vec()).collect());
        assert_eq!(found, expected.map_err(str::to_owned), "of {given:?}");
    }

    #[test]
    fn vectors_come_in_the_order_of_their_texts() {
        check(
            &[(Some(1), &[1.0]), (Some(0), &[2.0])],
            2,
            Ok(&[&[2.0], &[1.0]]),
        );
        check(&[(None, &[1.0]), (None, &[2.0])], 2, Ok(&[&[1.0], &[2.0]]));
        check(&[], 0, Ok(&[]));
    }

    #[test]
    fn answers_that_leave_a_text_without_a_vector_are_refused() {
        check(&[(None, &[1.0])], 2, Err("there are 1 vectors for 2 texts"));
        let twice = "a vector has the index 0, which no text or another has";
        check(&[(Some(0), &[1.0]), (Some(0), &[2.0])], 2, Err(twice));
        check(
            &[(None, &[1.0]), (None, &[])],
            2,
            Err("the vector of text 2 of 2 has 0 numbers, the first 1"),
        );
        let zeros = "the vector of text 2 of 2 is nothing but zeros, and has no direction";
        check(&[(None, &[1.0, 2.0]), (None, &[0.0, -0.0])], 2, Err(zeros));
    }
}
