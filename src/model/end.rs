//! The words with which providers say how an answer ended, by what they mean.

/// The meaning of a word on the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndWord {
    /// No word: a placeholder of a provider that always writes the field.
    None,
    /// The model ended the answer.
    Whole,
    /// A limit of tokens cut it.
    Cut,
    /// The provider failed.
    Failed,
    /// Any other word: the answer is not whole.
    Withheld,
}

const NONE: [&str; 3] = ["", "null", "not_finished"];
const WHOLE: [&str; 9] =
    ["stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed", "end_of_text", "endoftext"];
const CUT: [&str; 7] = [
    "length",
    "max_tokens",
    "max_output_tokens",
    "max_length",
    "model_length",
    "model_context_window_exceeded",
    "token_limit",
];
const FAILED: [&str; 11] = [
    "error",
    "abort",
    "aborted",
    "network_error",
    "server_error",
    "insufficient_system_resource",
    "time_limit",
    "timeout",
    "cancelled",
    "load",
    "unload",
];

impl EndWord {
    /// The meaning of a word, in capitals or not.
    pub(super) fn of(word: &str) -> Self {
        let word = word.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        let word = word.strip_prefix("finish_reason_").unwrap_or(&word);
        let classes =
            [(&NONE[..], Self::None), (&WHOLE[..], Self::Whole), (&CUT[..], Self::Cut), (&FAILED[..], Self::Failed)];
        let class = classes.into_iter().find(|(words, _)| words.contains(&word));
        class.map_or(Self::Withheld, |(_, class)| class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_by_class_and_unknown_ones_are_no_end() {
        for (word, class) in [
            ("", EndWord::None),
            ("STOP", EndWord::Whole),
            ("FINISH_REASON_STOP", EndWord::Whole),
            ("end-turn", EndWord::Whole),
            ("eos_token", EndWord::Whole),
            ("MAX_TOKENS", EndWord::Cut),
            ("network_error", EndWord::Failed),
            ("content_filter", EndWord::Withheld),
            ("tool_calls", EndWord::Withheld),
            ("pause_turn", EndWord::Withheld),
            ("FINISH_REASON_UNSPECIFIED", EndWord::Withheld),
            ("stopped", EndWord::Withheld),
        ] {
            assert_eq!(EndWord::of(word), class, "{word}");
        }
    }
}
