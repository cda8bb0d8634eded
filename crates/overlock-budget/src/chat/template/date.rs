//! Formats a time like `strftime`.

/// Formats a time in seconds since 1970 by a `strftime` format.
///
/// Unknown directives are kept unchanged.
pub(super) fn format(now: i64, format: &str) -> String {
    let moment = Moment::new(now);
    let mut written = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            written.push(character);
            continue;
        }
        match characters.next() {
            // Without the zero or blank in front.
            Some('-') => match characters.next() {
                Some(directive) => {
                    let padded = moment.directive(directive);
                    let bare = padded.trim_start_matches(['0', ' ']);
                    written.push_str(if bare.is_empty() { "0" } else { bare });
                }
                None => written.push_str("%-"),
            },
            Some(directive) => written.push_str(&moment.directive(directive)),
            None => written.push('%'),
        }
    }
    written
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

struct Moment {
    year: i64,
    /// From 0.
    month: usize,
    day: i64,
    day_of_year: i64,
    /// From Sunday.
    weekday: usize,
    second_of_day: i64,
}

impl Moment {
    fn new(now: i64) -> Self {
        let days = now.div_euclid(86_400);
        // Years are counted from March 0000, so that the leap day is the last of its year; 400 of
        // them have 146,097 days.
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_march_year =
            day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months from March have 153 days in every five.
        let march_month = (5 * day_of_march_year + 2) / 153;
        let month = (march_month + 2) % 12;
        let year = era * 400 + year_of_era + i64::from(month < 2);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let first_of_march = 59 + i64::from(is_leap);
        let day_of_year = if month < 2 {
            day_of_march_year - 306
        } else {
            day_of_march_year + first_of_march
        };
        Self {
            year,
            month: usize::try_from(month).unwrap_or(0),
            day: day_of_march_year - (153 * march_month + 2) / 5 + 1,
            day_of_year: day_of_year + 1,
            weekday: usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0),
            second_of_day: now.rem_euclid(86_400),
        }
    }

    fn directive(&self, directive: char) -> String {
        let hour = self.second_of_day / 3600;
        let minute = self.second_of_day / 60 % 60;
        let second = self.second_of_day % 60;
        let month = MONTHS[self.month];
        let weekday = DAYS[self.weekday];
        let (year, day) = (self.year, self.day);
        match directive {
            'Y' => format!("{year}"),
            'y' => format!("{:02}", year.rem_euclid(100)),
            'm' => format!("{:02}", self.month + 1),
            'B' => month.to_owned(),
            'b' | 'h' => month[..3].to_owned(),
            'd' => format!("{day:02}"),
            'e' => format!("{day:2}"),
            'j' => format!("{:03}", self.day_of_year),
            'A' => weekday.to_owned(),
            'a' => weekday[..3].to_owned(),
            'H' => format!("{hour:02}"),
            'I' => format!("{:02}", (hour + 11) % 12 + 1),
            'M' => format!("{minute:02}"),
            'S' => format!("{second:02}"),
            'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            'F' => format!("{year}-{:02}-{day:02}", self.month + 1),
            'T' => format!("{hour:02}:{minute:02}:{second:02}"),
            '%' => "%".to_owned(),
            unknown => format!("%{unknown}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_date(now: i64, directives: &str, written: &str) {
        assert_eq!(format(now, directives), written, "{now} as {directives:?}");
    }

    #[test]
    fn writes_dates_as_python_does() {
        check_date(0, "%d %b %Y, %A, day %j", "01 Jan 1970, Thursday, day 001");
        check_date(
            1_709_210_096,
            "%F %T %y %a %p %I",
            "2024-02-29 12:34:56 24 Thu PM 12",
        );
        check_date(1_735_689_599, "%B %-d, %Y (%j)", "December 31, 2024 (366)");
        check_date(951_868_800, "%F %j", "2000-03-01 061");
        check_date(-1, "%F %T", "1969-12-31 23:59:59");
    }

    #[test]
    fn keeps_unknown_directives() {
        check_date(0, "100%% %Q %", "100% %Q %");
        check_date(0, "%-", "%-");
    }

    #[test]
    fn takes_any_moment() {
        for now in [i64::MIN, i64::MIN / 2, i64::MAX / 2, i64::MAX] {
            assert!(!format(now, "%F %T %j").is_empty());
        }
    }
}
