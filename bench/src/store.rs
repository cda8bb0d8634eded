//! Measures how fast source code is stored, searched and walked.
//!
//! Engines in this process are measured by CPU time, as in the other tables, and those in another
//! process by wall-clock time. Writing also waits for the disk, so it has both rates; the second
//! depends on the disk and its other users.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use overlock_store::{
    Access, Direction, EdgeKind, Filter, Mention, NewFile, NewNode, NodeId, NodeKind, Query, Scope,
    Search, Store, StoreAddress, Vector, Walk,
};
use tempfile::TempDir;

use crate::Options;
use crate::clock::{once, shown_time};
use crate::random::Random;
use crate::table::Table;

/// The number of nodes in a file.
const NODES_PER_FILE: usize = 10;

/// The number of files in a batch.
const FILES_PER_CALL: usize = 200;

/// The dimensions of a vector, typical of a medium model.
const NUMBERS: usize = 768;

const QUERIES: usize = 300;
const REPOSITORY: &str = "repository";
const MODEL: &str = "model";

const ENGINES: &[Engine] = &[
    Engine {
        name: "SQLite",
        clock: Clock::Cpu,
        open: sqlite,
    },
    Engine {
        name: "PostgreSQL",
        clock: Clock::Wall,
        open: postgres,
    },
];

/// The variable with the address of `PostgreSQL`, set by `cargo xtask bench`.
const VARIABLE: &str = "OVERLOCK_POSTGRES";

struct Engine {
    name: &'static str,
    /// The clock for its queries.
    clock: Clock,
    /// Opens an empty store.
    open: fn() -> Result<Opened>,
}

/// The clock of a measurement.
#[derive(Clone, Copy)]
enum Clock {
    Cpu,
    Wall,
}

impl Clock {
    fn time<T>(self, work: impl FnOnce() -> T) -> (Duration, T) {
        match self {
            Self::Cpu => once(work),
            Self::Wall => {
                let begun = Instant::now();
                let done = work();
                (begun.elapsed(), done)
            }
        }
    }
}

/// A store and its temporary folder.
struct Opened {
    store: Arc<dyn Store>,
    /// The folder of its files, if they are local.
    folder: Option<TempDir>,
}

fn sqlite() -> Result<Opened> {
    let folder = tempfile::tempdir()?;
    let address = StoreAddress::Sqlite(folder.path().join("store.db"));
    let store = overlock_store::open(&address, Access::Create)?;
    let folder = Some(folder);
    Ok(Opened { store, folder })
}

fn postgres() -> Result<Opened> {
    let server = std::env::var(VARIABLE)
        .with_context(|| format!("{VARIABLE} does not say where it is: cargo xtask bench does"))?;
    let process = std::process::id();
    let address = format!("{server}?schema=bench_{process}").parse()?;
    let store = overlock_store::open(&address, Access::Create)?;
    let folder = None;
    Ok(Opened { store, folder })
}

/// Measures every engine.
pub(crate) fn run(options: &Options) -> Result<()> {
    let count = if options.quick { 10_000 } else { 100_000 };
    let corpus = Corpus::new(count);
    let mut table = Table::new([
        "engine",
        "nodes",
        "nodes/s",
        "wall clock",
        "edges",
        "size",
        "resolve all",
        "resolve one file",
        "keyword p50",
        "p95",
        "filtered p95",
        "hybrid p50",
        "p95",
        "walk, depth 4, p50",
        "p95",
    ]);
    for engine in ENGINES {
        let name = engine.name;
        eprintln!("   {count} nodes with {name}");
        let opened = (engine.open)().with_context(|| format!("could not open {name}"))?;
        let figures = measure(&opened, engine.clock, &corpus)?;
        table.row(
            [name.to_owned(), count.to_string()]
                .into_iter()
                .chain(figures),
        );
    }
    table.print("Store");
    Ok(())
}

fn measure(opened: &Opened, clock: Clock, corpus: &Corpus) -> Result<Vec<String>> {
    let store = &*opened.store;
    let files: Vec<NewFile<'_>> = corpus.files.iter().map(TestFile::as_new).collect();
    let begun = Instant::now();
    let (writing, done) = clock.time(|| {
        files
            .chunks(FILES_PER_CALL)
            .try_for_each(|files| store.put_files(REPOSITORY, files))
    });
    done?;
    let passed = begun.elapsed();
    let (resolving, done) = clock.time(|| store.resolve(REPOSITORY));
    done?;
    let size = opened.folder.as_ref().map(size).transpose()?;
    let (resolving_one, done) = clock.time(|| {
        store.remove_files(REPOSITORY, &[files[7].path])?;
        store.put_files(REPOSITORY, &files[7..8])?;
        store.resolve(REPOSITORY)
    });
    done?;
    let edges = store
        .repositories()?
        .iter()
        .map(|repository| repository.edges)
        .sum::<u64>();
    put_vectors(store, &corpus.vectors, &files)?;

    let queries = corpus.queries();
    let all = Filter::default();
    let filter = Filter {
        repository: Some(REPOSITORY),
        language: Some("csharp"),
        path: None,
    };
    let search = |search: Search<'_>, filter: Filter<'_>| {
        let query = Query {
            search,
            filter,
            limit: 20,
        };
        store.search(&query).map(drop)
    };
    let keyword = times(clock, &queries, |query| {
        search(Search::Keyword(&query.text), all)
    })?;
    let filtered = times(clock, &queries, |query| {
        search(Search::Keyword(&query.text), filter)
    })?;
    let hybrid = times(clock, &queries, |query| {
        let vector = Vector {
            model: MODEL,
            numbers: &query.vector,
        };
        search(Search::Hybrid(&query.text, vector), all)
    })?;
    let starts = corpus.starts();
    let walk = Walk {
        depth: 4,
        count: 100,
        kinds: &[],
        direction: Direction::Both,
    };
    let walks = times(clock, &starts, |from| store.walk(from, &walk).map(drop))?;
    let rate = |time: Duration| format!("{:.0}", corpus.count as f64 / time.as_secs_f64());
    Ok(vec![
        rate(writing),
        rate(passed),
        edges.to_string(),
        size.map_or_else(|| "–".to_owned(), |size| format!("{} MB", size / 1_000_000)),
        shown_time(resolving),
        shown_time(resolving_one),
        shown_time(keyword.0),
        shown_time(keyword.1),
        shown_time(filtered.1),
        shown_time(hybrid.0),
        shown_time(hybrid.1),
        shown_time(walks.0),
        shown_time(walks.1),
    ])
}

/// The median and the 95th percentile of the queries. Each is run once before, to warm the cache.
fn times<Q, E: std::error::Error + Send + Sync + 'static>(
    clock: Clock,
    questions: &[Q],
    ask: impl Fn(&Q) -> Result<(), E>,
) -> Result<(Duration, Duration)> {
    for question in questions.iter().take(questions.len() / 10) {
        ask(question)?;
    }
    let mut times = Vec::new();
    for question in questions {
        let (time, done) = clock.time(|| ask(question));
        done?;
        times.push(time);
    }
    times.sort();
    Ok((times[times.len() / 2], times[times.len() * 95 / 100]))
}

fn put_vectors(store: &dyn Store, vectors: &[Vec<f32>], files: &[NewFile<'_>]) -> Result<()> {
    let ids: Vec<NodeId> = files.iter().flat_map(|file| file.ids(REPOSITORY)).collect();
    let vectors: Vec<(NodeId, &[f32])> = ids
        .into_iter()
        .zip(vectors)
        .map(|(id, vector)| (id, vector.as_slice()))
        .collect();
    for vectors in vectors.chunks(1_000) {
        store.put_vectors(MODEL, vectors)?;
    }
    Ok(())
}

/// The bytes of all files in a folder.
fn size(folder: &TempDir) -> Result<u64> {
    let mut size = 0;
    for file in std::fs::read_dir(folder)? {
        size += file?.metadata()?.len();
    }
    Ok(size)
}

/// Generated source text with realistic lengths and repetition.
struct Corpus {
    count: usize,
    words: Vec<String>,
    files: Vec<TestFile>,
    vectors: Vec<Vec<f32>>,
}

struct TestFile {
    path: String,
    nodes: Vec<NewNode>,
    mentions: Vec<Mention>,
}

struct TestQuery {
    text: String,
    vector: Vec<f32>,
}

impl TestFile {
    fn as_new(&self) -> NewFile<'_> {
        NewFile {
            path: &self.path,
            hash: "0",
            imports: &[],
            nodes: &self.nodes,
            mentions: &self.mentions,
        }
    }
}

impl Corpus {
    fn new(count: usize) -> Self {
        let mut random = Random::new(1);
        let words = words(&mut random, 20_000);
        let names: Vec<String> = (0..count)
            .map(|_| identifier(&words, &mut random))
            .collect();
        let files = (0..count / NODES_PER_FILE)
            .map(|number| file(number, &names, &words, &mut random))
            .collect();
        let centres: Vec<Vec<f32>> = (0..200).map(|_| numbers(&mut random)).collect();
        let vectors = (0..count)
            .map(|place| near(&centres[place % 200], &mut random))
            .collect();
        Self {
            count,
            words,
            files,
            vectors,
        }
    }

    /// Queries of all kinds: adjacent words, names, and random common and rare words.
    fn queries(&self) -> Vec<TestQuery> {
        let mut random = Random::new(2);
        let queries = (0..QUERIES).map(|number| {
            let file = &self.files[random.below(self.files.len())];
            let node = &file.nodes[random.below(file.nodes.len())];
            let together: Vec<&str> = node.text.split(' ').collect();
            let text = match number % 6 {
                0 => node.name.clone(),
                1 => self.words[random.below(40)].clone(),
                2 => format!("{} {}", random.pick(&together), random.pick(&together)),
                3 => (0..4)
                    .map(|_| random.pick(&together))
                    .collect::<Vec<_>>()
                    .join(" "),
                4 => (0..3)
                    .map(|_| chosen(&self.words, &mut random))
                    .collect::<Vec<_>>()
                    .join(" "),
                _ => format!(
                    "where is the {} of {} made when {} fails",
                    chosen(&self.words, &mut random),
                    node.name,
                    random.pick(&together)
                ),
            };
            let place = random.below(self.vectors.len());
            let vector = near(&self.vectors[place], &mut random);
            TestQuery { text, vector }
        });
        queries.collect()
    }

    /// Sets of nodes to start from.
    fn starts(&self) -> Vec<Vec<NodeId>> {
        let mut random = Random::new(3);
        let starts = (0..QUERIES).map(|_| {
            let ids = (0..5).map(|_| {
                let file = self.files[random.below(self.files.len())].as_new();
                file.ids(REPOSITORY)
                    .swap_remove(random.below(NODES_PER_FILE))
            });
            ids.collect()
        });
        starts.collect()
    }
}

/// Words of a few syllables.
fn words(random: &mut Random, count: usize) -> Vec<String> {
    const SYLLABLES: &[&str] = &[
        "or", "der", "cus", "to", "mer", "val", "ue", "ser", "vice", "re", "quest", "name", "type",
        "pay", "ment", "ship", "log", "con", "fig", "ta", "ble", "in", "dex", "que", "ry", "lo",
        "cal", "mo", "del", "ex", "port", "ac", "count",
    ];
    (0..count)
        .map(|number| {
            let syllables = 1 + random.below(3) + usize::from(number > 500);
            (0..syllables).map(|_| random.pick(SYLLABLES)).collect()
        })
        .collect()
}

/// A random word by Zipf's law, as in real code: the first is in half of all nodes, the thirtieth in
/// a fifth, and the two-hundredth in a twentieth.
fn chosen<'a>(words: &'a [String], random: &mut Random) -> &'a str {
    let exponent = random.below(1 << 20) as f64 / f64::from(1 << 20);
    let place = (words.len() as f64).powf(exponent);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is from 1 to the number of words"
    )]
    &words[place as usize - 1]
}

fn identifier(words: &[String], random: &mut Random) -> String {
    let parts = (0..2 + random.below(2)).map(|_| {
        let word = chosen(words, random);
        let (first, rest) = word.split_at(1);
        format!("{}{rest}", first.to_uppercase())
    });
    parts.collect()
}

fn file(number: usize, names: &[String], words: &[String], random: &mut Random) -> TestFile {
    let folder = number % 97;
    let own = &names[number * NODES_PER_FILE..][..NODES_PER_FILE];
    let mut mentions = Vec::new();
    let nodes = own.iter().enumerate().map(|(place, name)| {
        let text: Vec<String> = (0..60)
            .map(|place| match place % 3 {
                0 => names[random.below(names.len())].clone(),
                _ => chosen(words, random).to_owned(),
            })
            .collect();
        for _ in 0..8 {
            mentions.push(Mention {
                from: place,
                kind: [EdgeKind::Calls, EdgeKind::References][random.below(2)],
                name: names[random.below(names.len())].clone(),
                scope: [Scope::Nearest, Scope::Anywhere][random.below(2)],
            });
        }
        let is_type = place == 0;
        NewNode {
            kind: if is_type {
                NodeKind::Type
            } else {
                NodeKind::Method
            },
            name: name.clone(),
            qualified: if is_type {
                format!("Folder{folder}.{name}")
            } else {
                format!("Folder{folder}.{}.{name}", own[0])
            },
            parent: (!is_type).then_some(0),
            language: "csharp".to_owned(),
            lines: (1, 20),
            span: 0..500,
            text: text.join(" "),
            metadata: "{}".to_owned(),
        }
    });
    TestFile {
        nodes: nodes.collect(),
        path: format!("src/folder{folder}/part{}/file{number}.cs", number % 13),
        mentions,
    }
}

/// Numbers between -1 and 1, mostly near 0.
fn numbers(random: &mut Random) -> Vec<f32> {
    (0..NUMBERS)
        .map(|_| {
            let sum: usize = (0..4).map(|_| random.below(1 << 16)).sum();
            sum as f32 / f32::from(1_u16 << 15) / 4.0 * 2.0 - 1.0
        })
        .collect()
}

fn near(centre: &[f32], random: &mut Random) -> Vec<f32> {
    let numbers = numbers(random);
    centre
        .iter()
        .zip(numbers)
        .map(|(centre, number)| centre + 0.7 * number)
        .collect()
}
