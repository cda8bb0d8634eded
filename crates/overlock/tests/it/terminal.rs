//! Output on terminals of any width.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::{Child, Command, Stdio};

use overlock_llm::testing::{Behaviour, Fault};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use unicode_width::UnicodeWidthChar;

use crate::complete::Model;
use crate::program::{TemporaryFile, Watchdog, command, interrupt};

/// The controlling side of a pseudo-terminal.
struct Terminal {
    person: File,
    program: File,
    screen: Screen,
}

/// The visible lines.
struct Screen {
    width: usize,
    lines: Vec<String>,
    /// The column of the next character in the last line.
    column: usize,
    /// The received part of an incomplete character or escape sequence.
    pending: Vec<u8>,
}

impl Terminal {
    fn new(width: u16) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&person).expect("it is ours");
        unlockpt(&person).expect("it is ours");
        let name = ptsname(&person, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("the name is ASCII");
        let program = OpenOptions::new().read(true).write(true).open(name);
        let program = program.expect("it can be opened");
        let size = Winsize {
            ws_row: 50,
            ws_col: width,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&program, size).expect("it takes a size");
        Self {
            person: person.into(),
            program,
            screen: Screen {
                width: usize::from(width),
                lines: vec![String::new()],
                column: 0,
                pending: Vec::new(),
            },
        }
    }

    fn side_of_the_program(&self) -> Stdio {
        self.program.try_clone().expect("it is open").into()
    }

    /// Reads until the screen fulfils the condition; `false` if the program ends before.
    fn look_until(&mut self, wanted: impl Fn(&Screen) -> bool) -> bool {
        let mut bytes = [0; 4096];
        while !wanted(&self.screen) {
            // Reading fails after the other side was closed.
            match self.person.read(&mut bytes) {
                Ok(count) if count > 0 => self.screen.show(&bytes[..count]),
                _ => return false,
            }
        }
        true
    }

    /// Reads until the program closes the terminal.
    fn look_to_the_end(mut self) -> Screen {
        self.program = File::open("/dev/null").expect("it is always there");
        self.look_until(|_| false);
        self.screen
    }
}

impl Screen {
    fn show(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let text = match str::from_utf8(&pending) {
            Ok(text) => text,
            Err(error) => str::from_utf8(&pending[..error.valid_up_to()]).expect("it is valid"),
        };
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if character != '\u{1b}' {
                self.put(character);
                rest = &rest[character.len_utf8()..];
                continue;
            }
            let Some(end) = rest.find(|letter: char| letter.is_ascii_alphabetic()) else {
                break;
            };
            match &rest[end..=end] {
                "K" => self.clear_to_the_right(),
                "m" => {}
                other => panic!("the screen does not know {other:?}"),
            }
            rest = &rest[end + 1..];
        }
        self.pending = pending[text.len() - rest.len()..].to_vec();
    }

    fn put(&mut self, character: char) {
        match character {
            '\r' => self.column = 0,
            '\n' => {
                self.lines.push(String::new());
                self.column = 0;
            }
            character => {
                let line = self.lines.last_mut().expect("there is always one");
                let mut cells: Vec<char> = line.chars().collect();
                cells.truncate(self.column);
                cells.push(character);
                *line = cells.into_iter().collect();
                self.column += 1;
                // Only a command to copy may be longer than the line.
                let columns: usize = line.chars().filter_map(UnicodeWidthChar::width).sum();
                assert!(
                    columns <= self.width || line.starts_with("hint: resume with: "),
                    "{line:?} breaks after {}",
                    self.width
                );
            }
        }
    }

    fn clear_to_the_right(&mut self) {
        let line = self.lines.last_mut().expect("there is always one");
        *line = line.chars().take(self.column).collect();
    }

    fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// Starts a command with its standard error on a terminal.
fn start(mut command: Command, stdout: Stdio, terminal: &Terminal) -> Child {
    // `command` keeps the terminal open, and is dropped at the end of this function.
    command
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(terminal.side_of_the_program())
        .spawn()
        .expect("the binary was built with the tests")
}

#[test]
fn progress_never_wraps_and_leaves_no_line() {
    for width in [60, 80, 140] {
        let faults = vec![Some(Fault::Drip(20)); 40];
        let model = Model::new(&format!("terminal-{width}"), &Behaviour::ALL, &faults);
        let command = model.command(&["Write about rivers.", "--strategy", "overlap"]);
        let terminal = Terminal::new(width);
        let child = start(command, Stdio::piped(), &terminal);
        // The document is short enough for the buffer of the pipe.
        let _watchdog = Watchdog::over(&child);
        let text = terminal.look_to_the_end().text();
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout), model.document);
        assert!(text.contains("complete: "), "{text}");
        assert!(
            text.contains("characters repeated") && text.contains("at /rows/"),
            "{text}"
        );
        // The progress line is removed.
        assert!(!text.contains('…') && !text.contains("tokens in"), "{text}");
    }
}

#[test]
fn keeps_the_received_part_of_a_cancelled_answer() {
    let model = Model::new("terminal-called-off", &[], &[Some(Fault::Silence(600))]);
    let mut terminal = Terminal::new(80);
    let command = model.command(&["Write about rivers."]);
    let child = start(command, Stdio::piped(), &terminal);
    let _watchdog = Watchdog::over(&child);
    let arrives = |screen: &Screen| screen.text().contains("bytes out");
    assert!(terminal.look_until(arrives), "{}", terminal.screen.text());
    interrupt(&child);
    let text = terminal.look_to_the_end().text();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("partial: it was cancelled"), "{text}");
    let part: Value = serde_json::from_slice(&output.stdout).expect("the part is valid");
    assert_eq!(part["rows"][0]["id"], 0, "{part}");
    let listed = model.inspect(&["--json"]).json();
    assert_eq!(
        (&listed[0]["iterations"], &listed[0]["reason"]),
        (&1.into(), &"cancelled".into())
    );
}

#[test]
fn the_demo_never_wraps_a_line() {
    for width in [60, 80, 140] {
        let terminal = Terminal::new(width);
        let command = command(&["demo", "--fast"]);
        let mut child = start(command, terminal.side_of_the_program(), &terminal);
        let _watchdog = Watchdog::over(&child);
        let text = terminal.look_to_the_end().text();
        assert!(child.wait().is_ok_and(|status| status.success()), "{text}");
        assert!(text.contains("identical to the original: yes"), "{text}");
    }
}

#[test]
fn a_long_rendered_text_is_limited_on_a_terminal() {
    let rows: Vec<_> = (0..2000)
        .map(|index| format!("{{\"id\": {index}}},\n"))
        .collect();
    let file = TemporaryFile::new("rows.json", format!("[{}", rows.concat()));
    for (arguments, limited) in [(&[][..], true), (&["--limit", "100000"], false)] {
        let terminal = Terminal::new(140);
        let mut command = command(&["render", "--budget", "100000"]);
        command.args(arguments).arg(file.path());
        let mut child = start(command, terminal.side_of_the_program(), &terminal);
        let _watchdog = Watchdog::over(&child);
        let text = terminal.look_to_the_end().text();
        assert!(child.wait().is_ok_and(|status| status.success()), "{text}");
        assert!(text.contains("{\"id\": 1999}"), "{text}");
        assert_eq!(
            text.contains("shortened to 10,000 characters"),
            limited,
            "{text}"
        );
        assert_eq!(text.contains(" more objects>"), limited, "{text}");
    }
}
