//! Prints tables in Markdown.

/// A table in Markdown, with its columns aligned.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(heads: [&str; N]) -> Self {
        Self {
            rows: vec![heads.map(str::to_owned).to_vec()],
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn print(&self, title: &str) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
                .max(3)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        println!("\n## {title}\n");
        for (index, row) in self.rows.iter().enumerate() {
            let cells = widths.iter().enumerate().map(|(column, width)| {
                let cell = row.get(column).map_or("", String::as_str);
                // The first column holds names, the others figures.
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            println!("| {} |", cells.collect::<Vec<_>>().join(" | "));
            if index == 0 {
                let rules = widths.iter().enumerate().map(|(column, width)| {
                    if column == 0 {
                        "-".repeat(*width)
                    } else {
                        format!("{}:", "-".repeat(width - 1))
                    }
                });
                println!("| {} |", rules.collect::<Vec<_>>().join(" | "));
            }
        }
    }
}

/// A percentage, rounded to 100 % only if exact.
pub(crate) fn share(part: usize, all: usize) -> String {
    if part == all {
        return "100 %".to_owned();
    }
    let share = 100.0 * part as f64 / all.max(1) as f64;
    format!("{:.2} %", share.min(99.99))
}
