//! The engines. Every law of the suite is a test for each of them.

use std::any::Any;
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use overlock_store::{Access, PostgresAddress, Store, StoreAddress, open};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// The variable in which `cargo xtask test` passes the address of `PostgreSQL`.
const VARIABLE: &str = "OVERLOCK_POSTGRES";

/// A new store.
pub(crate) struct Fresh {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) address: StoreAddress,
    /// What to remove with it.
    _resources: Box<dyn Any + Send + Sync>,
}

impl Fresh {
    /// A store at an address, with the resources to remove with it.
    fn at(address: StoreAddress, resources: impl Any + Send + Sync) -> Self {
        Self {
            store: open(&address, Access::Create).expect("a store"),
            address,
            _resources: Box::new(resources),
        }
    }

    /// The same store, opened again like by another process.
    pub(crate) fn again(&self) -> Arc<dyn Store> {
        open(&self.address, Access::Create).expect("a store")
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

        let address = env::var(VARIABLE)
            .unwrap_or_else(|_| panic!("{VARIABLE} is not set: run cargo xtask test postgres"));
        let address: StoreAddress = address.parse().expect("an address");
        let StoreAddress::Postgres(mut address) = address else {
            panic!("{VARIABLE} is not the address of a PostgreSQL database");
        };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        address.schema = format!("test_{}_{number}", std::process::id());
        Self { address: *address }
    }

    /// A connection with all permissions.
    pub(crate) fn admin(&self) -> Admin {
        Admin::connect(&self.address)
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        // The tables of a failed test are kept for inspection.
        if std::thread::panicking() {
            return;
        }
        let schema = &self.address.schema;
        self.admin()
            .run(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE"));
    }
}

/// A direct connection to the server.
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

    /// Runs statements and returns the first column of all rows.
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

/// Defines the test of a law for one engine.
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

/// Defines the tests of all laws for one engine.
macro_rules! hold_for {
    ($engine:ident: $($theme:ident { $($law:ident)+ })+) => {
        mod $engine {
            $(mod $theme {
                $(law! { $engine $theme $law })+
            })+
        }
    };
}

/// Defines the tests of all laws for all engines.
macro_rules! laws_hold_for {
    ($($engine:ident)+) => {
        $(hold_for! {
            $engine:
            runs {
                reads_what_was_written
                steps_are_recorded_once_and_without_gaps
                a_stale_claim_cannot_write
                a_run_is_locked_once
                concurrent_locks_of_a_run_exclude_each_other
                lists_locked_runs
                reads_only_new_steps
                an_unknown_run_cannot_be_claimed
                lists_the_latest_first
                lists_those_before_a_run
                runs_can_begin_concurrently
                an_ended_run_equals_one_recorded_step_by_step
                ended_runs_in_one_transaction_do_not_mix
                a_key_begins_one_run
                keys_have_any_length
                a_rejected_write_does_not_affect_others_in_its_transaction
                stores_any_text
                an_id_is_used_once
                concurrent_begins_with_one_key_begin_one_run
                keys_in_different_order_do_not_deadlock
                a_claim_sees_all_earlier_writes
                other_processes_read_acknowledged_writes
                a_reader_changes_nothing
            }
            indexing {
                reads_what_was_written
                putting_a_file_again_replaces_it
                removing_a_file_removes_its_nodes
                one_invalid_file_rejects_all
                invalid_files_are_rejected_with_a_reason
                repositories_do_not_mix
                stores_unusual_texts_unchanged
                another_process_reads_the_nodes
                a_repository_has_one_folder_until_it_is_replaced
                names_have_any_length
            }
            resolving {
                a_mention_resolves_to_a_later_file
                imported_names_come_after_enclosing_ones
                edges_are_removed_with_either_end
                two_mentions_of_a_node_make_one_edge
                parents_contain_their_children
                an_unchanged_repository_is_not_resolved_again
                a_change_resolves_only_its_mentions
                edges_equal_those_of_a_new_index
            }
            searching {
                words_find_identifiers
                nodes_with_all_words_come_first
                a_name_comes_before_its_mentions
                the_rarest_word_decides_if_no_node_has_all
                questions_are_searched_without_stop_words
                filters_restrict_the_hits
                removed_and_changed_texts_are_not_found
                query_syntax_is_searched_as_words
                limits_restrict_the_hits
            }
            vectors {
                the_nearest_vectors_come_first
                only_a_changed_text_loses_its_vector
                nodes_without_a_vector_are_listed_once
                filters_restrict_vector_searches
                hybrid_search_merges_both_lists
                vectors_of_other_processes_are_found
                invalid_vectors_are_rejected
                recall_is_high_for_random_vectors
                recall_is_high_for_clustered_vectors
            }
            walking {
                a_walk_is_sorted_by_depth
                a_walk_follows_the_given_kinds_and_direction
                a_walk_stops_at_its_limits
                a_walk_agrees_with_a_plain_search
                lists_the_edges_between_nodes
            }
            rooms {
                reads_the_last_messages_in_order
                messages_of_one_call_stay_together
                rooms_are_listed
                names_of_rooms_have_any_length
            }
            memories {
                the_most_important_memories_come_first
                old_and_unimportant_memories_are_left_out
                names_of_personas_have_any_length
            }
            strategies {
                reads_the_results_of_a_server_in_order
                the_oldest_results_of_a_model_are_dropped
                the_number_of_results_is_bounded
                a_busy_model_does_not_displace_others
                several_processes_can_add_results
            }
        })+
    };
}

laws_hold_for! { sqlite postgres }
