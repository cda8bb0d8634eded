//! A client for OpenAI's embeddings API.

use serde::Deserialize;
use serde_json::json;

use super::address::Endpoint;
use super::response::{LONGEST_ANSWER, error_message};
use super::{Http, retried};
use crate::backend::{BackendError, RetryPolicy};

/// An embedding model at a base URL such as `http://127.0.0.1:11434/v1`.
#[derive(Debug)]
pub struct Embeddings {
    http: Http,
    endpoint: Endpoint,
    model: String,
    policy: RetryPolicy,
}

/// The fields of a response that are read.
#[derive(Deserialize)]
struct EmbeddingsResponse {
    data: Vec<Embedded>,
}

#[derive(Deserialize)]
struct Embedded {
    /// The index of its text; servers that omit it answer in order.
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Embeddings {
    /// The model of this name at a base URL, with an optional key. Transient failures are retried.
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

    /// The host, without credentials, for messages.
    pub fn host(&self) -> &str {
        self.endpoint.host()
    }

    /// The vectors of texts, in order. All have the same length, and none is zero.
    pub async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, BackendError> {
        let body = json!({ "model": self.model, "input": texts, "encoding_format": "float" });
        let body = body.to_string().into_bytes();
        let ask = || self.ask(body.clone(), texts.len());
        retried(&self.policy, None, ask, |_| {}).await
    }

    async fn ask(&self, body: Vec<u8>, count: usize) -> Result<Vec<Vec<f32>>, BackendError> {
        let mut response = self.http.ask(&self.endpoint, body).await?;
        let body = response.read_whole(LONGEST_ANSWER).await?;
        let embeddings: EmbeddingsResponse = match serde_json::from_slice(&body) {
            Ok(embeddings) => embeddings,
            Err(error) => {
                let text = error_message(&body).unwrap_or_default();
                let shown: String = text.chars().take(200).collect();
                return Err(response.malformed(&format!("{error} in `{shown}`")));
            }
        };
        in_order(embeddings.data, count).map_err(|reason| response.malformed(&reason))
    }
}

/// The vectors in the order of their texts.
fn in_order(data: Vec<Embedded>, count: usize) -> Result<Vec<Vec<f32>>, String> {
    if data.len() != count {
        return Err(format!("{} vectors for {count} texts", data.len()));
    }
    let mut vectors = vec![Vec::new(); count];
    for (position, embedded) in data.into_iter().enumerate() {
        let index = embedded.index.unwrap_or(position);
        match vectors.get_mut(index) {
            Some(vector) if vector.is_empty() => *vector = embedded.embedding,
            _ => {
                return Err(format!("invalid or doubled vector index {index}"));
            }
        }
    }
    let length = vectors.first().map_or(0, Vec::len);
    for (position, vector) in vectors.iter().enumerate() {
        let number = position + 1;
        if vector.is_empty() || vector.len() != length {
            return Err(format!(
                "the vector of text {number} of {count} has {} numbers, the first {length}",
                vector.len()
            ));
        }
        if vector.iter().all(|number| *number == 0.0) {
            return Err(format!("the vector of text {number} of {count} is zero"));
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
        let vectors = in_order(data.collect(), count);
        let expected =
            expected.map(|vectors| vectors.iter().map(|vector| vector.to_vec()).collect());
        assert_eq!(vectors, expected.map_err(str::to_owned), "of {given:?}");
    }

    #[test]
    fn vectors_are_sorted_by_text() {
        check(
            &[(Some(1), &[1.0]), (Some(0), &[2.0])],
            2,
            Ok(&[&[2.0], &[1.0]]),
        );
        check(&[(None, &[1.0]), (None, &[2.0])], 2, Ok(&[&[1.0], &[2.0]]));
        check(&[], 0, Ok(&[]));
    }

    #[test]
    fn rejects_a_response_without_a_vector_for_each_text() {
        check(&[(None, &[1.0])], 2, Err("1 vectors for 2 texts"));
        let twice = "invalid or doubled vector index 0";
        check(&[(Some(0), &[1.0]), (Some(0), &[2.0])], 2, Err(twice));
        check(
            &[(None, &[1.0]), (None, &[])],
            2,
            Err("the vector of text 2 of 2 has 0 numbers, the first 1"),
        );
        let zeros = "the vector of text 2 of 2 is zero";
        check(&[(None, &[1.0, 2.0]), (None, &[0.0, -0.0])], 2, Err(zeros));
    }
}
