//! What argh says of mistakes, as this program says it.

/// The sentence in the place of argh's.
pub fn plain(told: &str) -> String {
    let told = told.trim_end();
    of_value(told, "Error parsing option '", true)
        .or_else(|| of_value(told, "Error parsing positional argument '", false))
        .or_else(|| of_missing(told))
        .or_else(|| {
            let word = told.strip_prefix("Unrecognized argument: ")?;
            Some(format!("{word:?} is one argument too many"))
        })
        .unwrap_or_else(|| told.to_owned())
}

/// `--threads "0": expected a whole number, 1 or more`
fn of_value(told: &str, beginning: &str, is_flag: bool) -> Option<String> {
    let rest = told.strip_prefix(beginning)?;
    let (name, rest) = rest.split_once("' with value '")?;
    let (value, reason) = rest.split_once("': ")?;
    if reason == "duplicate values provided" {
        return Some(if is_flag {
            format!("{name} was given twice; give it once")
        } else {
            format!("{value:?} is one argument too many")
        });
    }
    Some(if is_flag {
        format!("{name} {value:?}: {reason}")
    } else {
        format!("{value:?}: {reason}")
    })
}

/// `FILE is missing`
fn of_missing(told: &str) -> Option<String> {
    if !told.starts_with("Required ") {
        return None;
    }
    let missing = told.lines().filter(|line| line.starts_with(' '));
    let missing: Vec<String> = missing
        .map(|line| match line.trim() {
            flag if flag.starts_with('-') => flag.to_owned(),
            positional => positional.to_uppercase(),
        })
        .collect();
    let are = if missing.len() == 1 { "is" } else { "are" };
    Some(format!("{} {are} missing", missing.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_what_was_given() {
        for (told, expected) in [
            (
                "Error parsing option '--threads' with value '0': expected 1\n",
                "--threads \"0\": expected 1",
            ),
            (
                "Error parsing option '--data' with value 'x': duplicate values provided\n",
                "--data was given twice; give it once",
            ),
            (
                "Error parsing positional argument 'url' with value 'x': expected y\n",
                "\"x\": expected y",
            ),
            (
                "Required positional arguments not provided:\n    email\n    name\n",
                "EMAIL and NAME are missing",
            ),
            (
                "Required options not provided:\n    --to\n",
                "--to is missing",
            ),
            (
                "Unrecognized argument: x\n",
                "\"x\" is one argument too many",
            ),
            ("Something else\n", "Something else"),
        ] {
            assert_eq!(plain(told), expected);
        }
    }
}
