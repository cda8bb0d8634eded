//! Which engines are there? Every law of the suite is a test for each of them.

use std::any::Any;
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use overlock_store::{Access, PostgresAddress, Store, StoreAddress, open};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Where `cargo xtask test` says that `PostgreSQL` is.
const VARIABLE: &str = "OVERLOCK_POSTGRES";

/// A store that nobody has written to yet.
pub(crate) struct Fresh {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) address: StoreAddress,
    /// What is taken away with it.
    _around: Box<dyn Any + Send + Sync>,
}

impl Fresh {
    /// A store at an address, with what is to be taken away when it is not needed any more.
    fn at(address: StoreAddress, around: impl Any + Send + Sync) -> Self {
        Self {
            store: open(&address, Access::Make).expect("a store"),
            address,
            _around: Box::new(around),
        }
    }

    /// The same store as another process has it.
    pub(crate) fn again(&self) -> Arc<dyn Store> {
        open(&self.address, Access::Make).expect("a store")
    }
}

fn sqlite() -> Fresh {
    let folder = tempfile::tempdir().expect("a folder");
    let address = StoreAddress::Sqlite(folder.path().join("store.db"));
    Fresh::at(address, folder)
}

fn postgres() -> Fresh {
    let schema = Schema::new();
    let address = StoreAddress::Postgres(Box::new(schema.address.clone()));
    Fresh::at(address, schema)
}

/// A schema for one test.
pub(crate) struct Schema {
    pub(crate) address: PostgresAddress,
}

impl Schema {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let given = env::var(VARIABLE).unwrap_or_else(|_| {
            panic!("{VARIABLE} does not say where PostgreSQL is: run cargo xtask test")
        });
        let given: StoreAddress = given.parse().expect("an address");
        let StoreAddress::Postgres(mut address) = given else {
            panic!("{VARIABLE} names another store");
        };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        address.schema = format!("test_{}_{number}", std::process::id());
        Self { address: *address }
    }

    /// Somebody who may do everything.
    pub(crate) fn admin(&self) -> Admin {
        Admin::connect(&self.address)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // A test that failed leaves what it found to be looked at.
        if std::thread::panicking() {
            return;
        }
        let schema = &self.address.schema;
        self.admin()
            .run(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
    }
}

/// A connection that the store knows nothing of.
pub(crate) struct Admin {
    runtime: Runtime,
    client: Client,
}

impl Admin {
    fn connect(address: &PostgresAddress) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut config = tokio_postgres::Config::new();
        config
            .user(&address.user)
            .host(&address.host)
            .port(address.port)
            .dbname(&address.database)
            .options(format!("-c search_path={},public", address.schema));
        if let Some(password) = &address.password {
            config.password(&password.0);
        }
        let client = runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await.expect("a server");
            tokio::spawn(connection);
            client
        });
        Self { runtime, client }
    }

    /// The first column of every row that statements give.
    pub(crate) fn run(&self, statements: &str) -> Vec<String> {
        let rows = self.runtime.block_on(self.client.simple_query(statements));
        let rows = rows.unwrap_or_else(|error| panic!("{statements}: {error:?}"));
        let rows = rows.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        rows.collect()
    }
}

/// Makes a test of a law, for one engine.
macro_rules! law {
    (sqlite $theme:ident $law:ident) => {
        #[test]
        fn $law() {
            crate::$theme::$law(&crate::engines::sqlite());
        }
    };
    (postgres $theme:ident $law:ident) => {
        #[test]
        #[ignore = "needs PostgreSQL: run cargo xtask test postgres"]
        fn $law() {
            crate::$theme::$law(&crate::engines::postgres());
        }
    };
}

/// Makes a test of every law, for one engine.
macro_rules! hold_for {
    ($engine:ident: $($theme:ident { $($law:ident)+ })+) => {
        mod $engine {
            $(mod $theme {
                $(law! { $engine $theme $law })+
            })+
        }
    };
}

/// The laws, for as many engines as are named.
macro_rules! laws_hold_for {
    ($($engine:ident)+) => {
        $(hold_for! {
            $engine:
            runs {
                gives_back_what_it_was_given
                steps_are_recorded_once_and_without_gaps
                who_was_taken_for_dead_cannot_write_any_more
                a_run_is_worked_on_by_one_at_a_time
                many_who_want_to_work_on_a_run_never_do_so_together
                who_looks_sees_which_runs_are_worked_on
                who_follows_a_run_is_told_what_is_new
                nobody_takes_up_what_is_not_there
                lists_the_latest_first
                lists_those_before_a_run
                many_begin_at_once
                a_run_that_is_told_when_it_is_over_is_as_one_that_was_recorded
                runs_that_are_told_together_keep_what_is_their_own
                a_key_begins_one_run
                keys_have_any_length
                what_is_written_together_is_there_together_and_one_failure_spoils_no_other
                any_text_comes_back
                a_name_is_taken_once
                a_key_that_many_begin_at_once_begins_one_run
                keys_begun_in_another_order_do_not_wait_for_one_another
                who_takes_a_run_up_sees_all_that_was_written_before
                what_was_acknowledged_can_be_read_by_others_at_once
                who_only_reads_changes_nothing
            }
            indexing {
                gives_back_what_it_was_given
                a_file_that_is_put_again_is_replaced
                removing_a_file_leaves_nothing_of_it
                all_files_of_a_call_are_kept_or_none
                contradictions_are_refused_with_words
                repositories_do_not_mix
                hostile_texts_are_kept_as_they_are
                what_was_written_is_there_for_the_next
                a_repository_is_made_from_one_folder_until_another_takes_its_place
                names_of_any_length_are_names
            }
            resolving {
                a_mention_finds_what_comes_later
                what_a_file_imports_is_meant_where_nothing_nearer_is
                edges_go_with_either_end
                two_mentions_of_one_thing_are_one_edge
                parents_contain_their_children
                an_unchanged_repository_costs_nothing
                a_change_costs_what_speaks_of_it
                edges_are_those_of_an_index_made_anew
            }
            searching {
                words_find_identifiers
                all_words_come_before_any
                a_name_comes_before_those_who_mention_it
                the_rarest_word_decides_where_not_all_are_found
                questions_are_about_their_words
                filters_hold
                what_is_gone_or_changed_is_not_found_any_more
                hostile_queries_are_only_words
                limits_hold
            }
            vectors {
                the_nearest_come_first
                a_changed_text_loses_its_vector_and_an_unchanged_one_keeps_it
                nodes_without_a_vector_are_told_once
                filters_hold_for_vectors
                both_ways_of_searching_come_together
                the_writes_of_others_are_seen
                vectors_that_cannot_be_compared_are_refused
                almost_nothing_is_missed_among_vectors_by_chance
                almost_nothing_is_missed_among_vectors_in_clusters
            }
            walking {
                a_walk_goes_from_the_nearest_to_the_farthest
                a_walk_follows_the_kinds_and_the_direction_it_is_told
                a_walk_ends_where_it_is_told
                a_walk_is_as_far_as_the_plain_search_says
                edges_among_nodes_are_told
            }
            rooms {
                the_last_messages_come_in_their_order
                messages_of_several_at_once_do_not_come_between
                rooms_are_listed
                names_of_rooms_have_any_length
            }
            memories {
                the_most_important_come_first
                what_is_too_old_or_not_important_is_left_out
                names_of_personas_have_any_length
            }
            strategies {
                results_of_a_server_come_back_in_their_order
                the_oldest_results_of_a_model_are_dropped
                made_up_models_fill_no_store
                a_busy_model_drops_no_results_of_others
                several_processes_add_to_the_same_results
            }
        })+
    };
}

laws_hold_for! { sqlite postgres }
