//! Words by which models name thoughts, answers and speakers: one normal form, and one table for all notations.
//!
//! A phrase is a few words of the table and nothing else: `Thinking`, `BEGIN OF MY THOUGHTS`, `思考过程`. In its normal form
//! case, width and styles of letters, characters that nobody sees, accents that are written apart and punctuation count for
//! nothing. One unknown word makes a text prose.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::denying;
use crate::vocab::is_invisible;

/// The meaning of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// Thoughts; they are surely of the model, or may be the title of an answer (`Analysis`).
    Thoughts { is_sure: bool },
    /// The answer, which ends thoughts that a word began; or perhaps a part of it, a call, or the end of something.
    Answer { is_final: bool },
    /// The turn of a user.
    User,
    /// The text of a user, if it is a heading (`### Instruction`).
    Task,
    /// The turn of a tool or the system.
    Result,
    /// The turn of the model.
    Model,
    /// The end of something.
    End,
}

/// The class of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Surely thoughts of a model.
    Thought,
    /// Thoughts, or a part of an answer.
    Musing,
    Answer,
    /// Perhaps the answer or a part of it.
    Product,
    /// A call, of which there may be several.
    Call,
    User,
    Task,
    /// Tools, the system, and speakers whose names are labels, too.
    Result,
    Model,
    /// Says that a turn is made up.
    Made,
    Open,
    Close,
    /// Introduces something, perhaps the answer.
    Lead,
    /// Says nothing.
    Filler,
    /// Denies what stands beside it.
    No,
}

/// The table: classes with their words in lower case.
#[rustfmt::skip]
const WORDS: &[(Class, &[&str])] = &[
    (Class::Thought, &[
        // English
        "brainstorming", "cogitation", "contemplation", "cot", "deliberation", "deliberations", "introspection",
        "monologue", "musing", "musings", "ponder", "pondering", "reasoning", "reflecting", "rumination",
        "scratchpad", "scratchpads", "soliloquy", "think", "thinking", "thinks", "thought", "thoughts",
        // Chinese, Japanese, Korean
        "内心独白", "思想", "思考", "思考中", "思考内容", "思考過程", "思考过程", "思索", "思維", "思維鏈", "思維過程", "思维", "思维过程", "思维链", "想法",
        "推理", "推理過程", "推理过程", "推論", "深度思考", "考え", "考え中", "思考プロセス", "내적독백", "사고", "사고과정", "생각", "생각중", "추론",
        // German, Dutch, Scandinavian
        "denken", "denkprozess", "denkvorgang", "gedanke", "gedanken", "gedankengang", "nachdenken", "uberlegung",
        "uberlegungen", "überlegen", "überlegung", "überlegungen", "denkproces", "gedachte", "gedachten",
        "gedachtegang", "nadenken", "overweging", "overwegingen", "redenering", "ræsonnement", "resonemang",
        "resonnement", "tankar", "tanker", "tanke", "tankegang", "tankegång", "tenker", "tänker", "tænker",
        "ajatukset", "ajatus", "pohdinta",
        // Romance
        "pensée", "pensees", "pensées", "raisonnement", "réflexion", "réflexions", "réfléchir", "pensamiento",
        "pensamientos", "pensando", "pensar", "razonamiento", "reflexion", "reflexiones", "reflexión", "pensamento",
        "pensamentos", "raciocinio", "raciocínio", "reflexao", "reflexão", "pensieri", "pensiero", "ragionamento",
        "riflessione", "riflessioni", "gândire", "gânduri", "raționament",
        // Slavic
        "думаю", "думка", "думки", "мислення", "міркування", "мысли", "мысль", "мышление", "обдумывание",
        "размышление", "размышления", "рассуждение", "рассуждения", "роздуми", "myslenie", "myśl", "myśli",
        "myślenie", "przemyślenia", "rozumowanie", "myšlenka", "myšlenky", "přemýšlení", "uvažování", "úvaha",
        "мисли", "разсъждение",
        // Others
        "akıl", "düşünce", "düşünceler", "düşünme", "düşünüyorum", "gondolat", "gondolatok", "gondolkodás",
        "σκέψεις", "σκέψη", "أفكار", "استدلال", "التفكير", "تفكير", "فکر", "استدلال", "מחשבה", "מחשבות", "חשיבה",
        "विचार", "सोच", "चिंतन", "ความคิด", "คิด", "berpikir", "pemikiran", "penalaran", "nghĩ", "suy",
    ]),
    (Class::Musing, &[
        "analyse", "analysis", "analyzing", "brainstorm", "commentary", "considerations", "draft", "drafting",
        "drafts", "explanation", "hidden", "inner", "internal", "notes", "plan", "planning", "private", "rationale",
        "reason", "reflect", "reflection", "reflections", "scratch", "silent", "work", "working", "workings", "分析",
        "反思", "草稿", "考察", "분석", "begründung", "análisis", "análise", "analisi", "анализ", "analiza",
    ]),
    (Class::Answer, &[
        "answer", "answers", "completion", "final", "reply", "response", "responses", "solution", "verdict",
        "最終回答", "最终回答", "最终答案", "最終答案", "回复", "回答", "回應", "答え", "答案", "結論", "结论", "답", "답변", "최종답변", "antwort",
        "endgültige", "lösung", "antwoord", "svar", "vastaus", "réponse", "finale", "respuesta",
        "resposta", "risposta", "răspuns", "odpowiedź", "odpověď", "ответ", "відповідь", "отговор", "cevap", "yanıt",
        "válasz", "απάντηση", "الإجابة", "الجواب", "إجابة", "جواب", "پاسخ", "תשובה", "जवाब", "คำตอบ", "jawaban",
        "lời", "trả", "答复", "最终", "最終", "최종",
    ]),
    (Class::Product, &[
        "conclusion", "decision", "ergebnis", "message", "output", "result", "summary", "输出",
    ]),
    (Class::Call, &[
        "act", "action", "actions", "call", "calls",
    ]),
    (Class::User, &[
        "human", "user", "用户", "ユーザー", "사용자", "benutzer", "nutzer", "utilisateur", "usuario", "humano", "usuário",
        "utente", "gebruiker", "bruker", "användare", "użytkownik", "uživatel", "kullanıcı", "felhasználó", "пользователь",
    ]),
    (Class::Task, &[
        "instruction", "instructions", "input", "prompt", "query", "question",
    ]),
    (Class::Result, &[
        "context", "customer", "environment", "function", "observation", "observations", "q", "system", "tool", "tools", "系统",
    ]),
    (Class::Model, &[
        "ai", "asistente", "assistant", "assistent", "assistente", "bot", "chatgpt", "claude", "gemini", "gpt", "model", "助手", "ассистент",
    ]),
    (Class::Made, &[
        "hypothetical", "imaginary", "imagined", "simulated",
    ]),
    (Class::Open, &[
        "begin", "begins", "open", "opening", "start", "starting", "starts", "开始", "開始",
    ]),
    (Class::Close, &[
        "close", "closed", "closing", "complete", "completed", "done", "end", "ended", "ending", "ends", "fin",
        "finish", "finished", "over", "stop", "结束", "結束", "終了", "끝", "ende", "конец", "fine",
    ]),
    (Class::Lead, &[
        "are", "below", "here", "is",
    ]),
    (Class::Filler, &[
        "a", "about", "active", "aloud", "block", "box", "by", "chain", "content", "current", "da", "das", "de",
        "deep", "del", "der", "des", "di", "die", "do", "el", "first", "for", "id", "la", "le", "let", "long",
        "loud", "min", "minutes", "mode", "my", "new", "number", "of", "out", "pad", "part", "phase", "process",
        "prozess", "processo", "proceso", "processus", "s", "sec", "second", "seconds", "section", "self", "stage",
        "step", "stream", "tag", "talk", "text", "the", "time", "token", "tokens", "trace", "version", "visible", "voice", "過程",
        "过程", "과정", "내용", "процесс", "proces", "süreci",
    ]),
    (Class::No, &[
        "no", "non", "not", "without",
    ]),
];

/// Words that lead from one element to the next and say nothing else, in lower case.
#[rustfmt::skip]
const JOINING: &[&str] = &[
    // English
    "addition", "additionally", "also", "and", "another", "both", "finally", "first", "firstly", "furthermore", "lastly",
    "meanwhile", "moreover",
    "next", "now", "plus", "second", "secondly", "then", "third", "thirdly", "too",
    // German, Dutch, Scandinavian
    "anschließend", "auch", "außerdem", "danach", "dann", "erstens", "nun", "schließlich", "und", "zudem", "zuerst",
    "zunächst", "zweitens", "daarna", "dan", "eerst", "en", "ook", "nu", "vervolgens", "och", "og", "også", "också", "sedan",
    // Romance
    "abord", "aussi", "enfin", "ensuite", "et", "puis", "además", "ahora", "agora", "después", "finalmente", "luego", "primero", "segundo",
    "también", "y", "depois", "e", "primeiro", "também", "anche", "dopo", "infine", "inoltre", "ora", "poi", "prima", "apoi", "și",
    // Slavic
    "затем", "и", "потом", "сначала", "также", "потім", "спочатку", "також", "i", "najpierw", "następnie", "oraz",
    "potem", "też", "nejprve", "potom",
    // Chinese, Japanese, Korean
    "其次", "另外", "此外", "其他", "和", "接着", "接著", "然后", "然後", "还有", "首先", "そして", "また", "まず", "次に", "그리고", "다음", "또한", "먼저",
    // Others
    "ayrıca", "sonra", "ve", "és", "majd", "και", "μετά", "أولا", "ثانيا", "ثم", "और", "फिर", "kemudian", "lalu", "tiếp", "và",
];

/// Words around them that say nothing at all.
#[rustfmt::skip]
const AROUND: &[&str] = &[
    "a", "an", "are", "as", "ask", "call", "calls", "check", "das", "de", "der", "die", "el", "den", "find", "for", "from", "function", "für",
    "get",
    "here", "ich", "in", "is", "it", "la", "le", "let", "ll", "look", "looking", "me", "mit", "number", "noch", "of", "on", "para",
    "pour", "search", "step", "the", "to", "tool", "up", "us", "we", "well", "will", "with",
];

/// The part of a word in the text between two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// It leads on: `then`.
    Joins,
    /// It says nothing: `the`, `call`, `2`.
    Nothing,
    /// It may take an element back: `not`, `draft`, `rather`.
    Denies,
    /// It names a part of a conversation: `answer`, `user`.
    Names,
    Unknown,
}

/// The part of a word, in its normal form, in the text between two elements.
pub(super) fn joint(word: &str) -> Joint {
    let is_number = word.trim_start_matches(|c: char| c.is_numeric());
    match CLASSES.get(word) {
        _ if JOINING.contains(&word) => Joint::Joins,
        Some(Class::Call) => Joint::Nothing,
        _ if AROUND.contains(&word) => Joint::Nothing,
        _ if matches!(is_number, "" | "st" | "nd" | "rd" | "th") => Joint::Nothing,
        Some(Class::Thought | Class::Musing) => Joint::Denies,
        _ if denying::is_contrary(word) => Joint::Denies,
        _ if word.chars().count() == 1 && !word.contains(denying::is_unspaced) => Joint::Nothing,
        None | Some(Class::Filler | Class::Lead) => Joint::Unknown,
        Some(_) => Joint::Names,
    }
}

/// Returns whether a word says that something is not, or is made up.
pub(super) fn is_denial(word: &str) -> bool {
    matches!(CLASSES.get(word), Some(Class::No | Class::Made))
}

/// Returns whether a word surely names thoughts.
pub(super) fn is_thought(word: &str) -> bool {
    CLASSES.get(word) == Some(&Class::Thought)
}

/// Returns whether a word names a user.
pub(super) fn is_user(word: &str) -> bool {
    CLASSES.get(word) == Some(&Class::User)
}

/// Returns whether a word names a call.
pub(super) fn is_call(word: &str) -> bool {
    CLASSES.get(word) == Some(&Class::Call)
}

/// Returns whether a word names another speaker than the model, or the task of one.
pub(super) fn is_role(word: &str) -> bool {
    joint(word) == Joint::Names && matches!(CLASSES.get(word), Some(Class::User | Class::Task | Class::Result))
}

/// Returns whether a word names the answer of a model, a part of it, or the model.
pub(super) fn is_answer(word: &str) -> bool {
    matches!(CLASSES.get(word), Some(Class::Answer | Class::Product | Class::Call | Class::Model))
}

/// The words of a text in their normal form, with their places.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, usize, String)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let found = word(text, at, text.len())?;
        at = found.end;
        Some((found.start, found.end, found.normal))
    })
}

static CLASSES: LazyLock<HashMap<&str, Class>> =
    LazyLock::new(|| WORDS.iter().flat_map(|(class, words)| words.iter().map(|word| (*word, *class))).collect());

/// Most words of a phrase.
const MOST: usize = 7;

/// A phrase at the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phrase {
    pub(super) says: Says,
    /// True if a word or a slash before the first one says that something ends here.
    pub(super) closes: bool,
    /// Start of the first word.
    pub(super) start: usize,
    /// Offset behind the last word.
    pub(super) end: usize,
    /// Start of the word behind it, or the end of the text.
    pub(super) next: usize,
}

/// Returns whether a word begins near the start of a text: a cheap test before a phrase is read.
pub(super) fn begins(text: &str) -> bool {
    const NEAR: usize = 16;
    text.chars().take(NEAR).filter_map(letter).any(char::is_alphanumeric)
}

/// Reads the phrase that `text[at..until]` begins with, behind any punctuation: words of the table, up to the first gap
/// between two words that `is_end` takes, or up to the end. `None` if another word stands there.
pub(super) fn phrase(text: &str, at: usize, until: usize, is_end: impl Fn(&str) -> bool) -> Option<Phrase> {
    let mut tally = Tally::default();
    let first = word(text, at, until)?;
    let mut closes = is_slashed(&text[at..first.start]);
    let (start, mut end, mut next) = (first.start, first.start, Some(first));
    while let Some(found) = next.take() {
        if end > start && is_end(&text[end..found.start]) {
            next = Some(found);
            break;
        }
        tally.add(&found.normal)?;
        end = found.end;
        next = word(text, end, until);
    }
    closes |= tally.has(Class::Close);
    Some(Phrase { says: tally.says()?, closes, start, end, next: next.map_or(until, |next| next.start) })
}

/// The classes of the words of a phrase.
#[derive(Debug, Default)]
struct Tally {
    classes: u16,
    words: usize,
}

impl Tally {
    fn add(&mut self, word: &str) -> Option<()> {
        self.words += 1;
        let known = |word: &str| CLASSES.get(word).copied();
        let bare = word.trim_end_matches(|c: char| c.is_ascii_digit());
        match known(word).or_else(|| known(bare)) {
            Some(class) => self.set(class),
            None if bare.is_empty() => {}
            // `endthink`
            None => {
                let (edge, rest) = ["begin", "start", "open", "end", "close", "stop"]
                    .into_iter()
                    .find_map(|edge| Some((edge, word.strip_prefix(edge)?)))?;
                self.set(known(rest).filter(|class| matches!(class, Class::Thought | Class::Musing))?);
                self.set(known(edge)?);
            }
        }
        (self.words <= MOST && !self.has(Class::No)).then_some(())
    }

    fn set(&mut self, class: Class) {
        self.classes |= 1 << class as u16;
    }

    fn has(&self, class: Class) -> bool {
        self.classes & (1 << class as u16) != 0
    }

    fn says(&self) -> Option<Says> {
        let is_thought = self.has(Class::Thought);
        let is_other = self.has(Class::User) || self.has(Class::Task) || self.has(Class::Result);
        match () {
            () if is_thought || self.has(Class::Musing) => {
                let is_sure = is_thought && !self.has(Class::Lead);
                let is_answer = self.has(Class::Answer) || self.has(Class::Product) || self.has(Class::Call);
                (!is_other && !is_answer).then_some(Says::Thoughts { is_sure })
            }
            // `The user: …` tells of one.
            () if self.has(Class::User) => (!self.has(Class::Filler)).then_some(Says::User),
            () if self.has(Class::Result) && self.has(Class::Call) => Some(Says::Answer { is_final: false }),
            () if self.has(Class::Result) => (!self.has(Class::Filler)).then_some(Says::Result),
            () if self.has(Class::Answer) => Some(Says::Answer { is_final: true }),
            () if self.has(Class::Product) || self.has(Class::Call) => Some(Says::Answer { is_final: false }),
            () if self.has(Class::Task) => Some(Says::Task),
            () if self.has(Class::Model) => (!self.has(Class::Filler)).then_some(Says::Model),
            () => self.has(Class::Close).then_some(Says::End),
        }
    }
}

/// A word with its normal form.
struct Word {
    start: usize,
    end: usize,
    normal: String,
}

/// The first word of `text[at..until]`: a run of letters and digits, which a capital behind a small letter divides, too.
fn word(text: &str, at: usize, until: usize) -> Option<Word> {
    /// Length of the longest word, in bytes: others are not in the table.
    const LONGEST: usize = 64;
    let mut start = at;
    while let Some(c) = text[start..until].chars().next() {
        match c {
            '&' => start += reference(&text[start..until]).unwrap_or(1),
            _ if letter(c).is_some_and(char::is_alphanumeric) => break,
            _ => start += c.len_utf8(),
        }
    }
    let (mut end, mut normal, mut was_small) = (start, String::new(), false);
    for c in text[start..until].chars() {
        if let Some(plain) = letter(c) {
            if !plain.is_alphanumeric() || (was_small && plain.is_uppercase()) || end > start + LONGEST {
                break;
            }
            was_small = plain.is_lowercase();
            normal.extend(plain.to_lowercase());
        }
        end += c.len_utf8();
    }
    (!normal.is_empty()).then_some(Word { start, end, normal })
}

/// Length of the reference to a bracket that a text begins with: `&lt;`, `&#60;`.
fn reference(text: &str) -> Option<usize> {
    const BRACKETS: &[&str] = &[
        "&lt;", "&gt;", "&LT;", "&GT;", "&#60;", "&#62;", "&#x3c;", "&#x3e;", "&#x3C;", "&#x3E;", "&lsqb;", "&rsqb;",
        "&lbrack;", "&rbrack;", "&#91;", "&#93;", "&quot;", "&nbsp;", "&amp;",
    ];
    BRACKETS.iter().find(|known| text.starts_with(**known)).map(|known| known.len())
}

/// The plain letter that a character is written for: without width (`Ａ`) and style (`𝐀`, `Ⓐ`). `None` for characters that a
/// word may hold unseen, and for accents that are written apart.
fn letter(c: char) -> Option<char> {
    let ascii = |offset: u32| char::from_u32(offset);
    match c {
        '\u{0}'..='\u{7f}' => Some(c),
        '\u{ff01}'..='\u{ff5e}' => ascii(c as u32 - 0xfee0),
        '\u{1d400}'..='\u{1d6a3}' => {
            let place = (c as u32 - 0x1d400) % 52;
            ascii(if place < 26 { 'A' as u32 + place } else { 'a' as u32 + place - 26 })
        }
        '\u{24b6}'..='\u{24cf}' => ascii('A' as u32 + c as u32 - 0x24b6),
        '\u{24d0}'..='\u{24e9}' => ascii('a' as u32 + c as u32 - 0x24d0),
        // Accents, tones and signs without a vowel, which Unicode does not count among the letters.
        '\u{300}'..='\u{36f}' | '\u{64b}'..='\u{652}' | '\u{94d}' | '\u{9cd}' | '\u{e47}'..='\u{e4e}' => None,
        _ if is_invisible(c) => None,
        _ => Some(c),
    }
}

/// Returns whether a single slash stands last in a gap, behind white space and bars (`[ / `).
fn is_slashed(gap: &str) -> bool {
    let mut marks = gap.chars().rev().filter_map(letter).filter(|&c| !(c.is_whitespace() || c == '|'));
    marks.next() == Some('/') && marks.next() != Some('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str) -> Option<(Says, bool)> {
        phrase(text, 0, text.len(), |gap| gap.contains(':')).map(|found| (found.says, found.closes))
    }

    #[test]
    fn phrases_are_read_in_their_normal_form() {
        let thoughts = Says::Thoughts { is_sure: true };
        for text in [
            "Thinking",
            "THINK",
            "[ th\u{200b}ink ]",
            "ＴＨＩＮＫ",
            "𝐓𝐡𝐢𝐧𝐤𝐢𝐧𝐠",
            "BEGIN OF MY THOUGHTS",
            "## Thought process",
            "innerMonologue",
            "思考过程",
            "Überlegungen",
            "u\u{308}berlegung",
            "chain-of-thought",
            "Thought 1",
            "Step 2 thinking",
            "&lt;think&gt;",
            "beginthink",
            "Thinking: I <a>",
            "Thought for 5 seconds",
            "model\nthought",
        ] {
            assert_eq!(says(text), Some((thoughts, false)), "{text}");
        }
        for text in
            ["/think", "[ /THINK ]", "</think>", "...done thinking.", "END OF THOUGHT", "endthink", "&lt;/think&gt;"]
        {
            assert_eq!(says(text), Some((thoughts, true)), "{text}");
        }
        for (text, meant) in [
            ("Analysis", Says::Thoughts { is_sure: false }),
            ("Here are my thoughts", Says::Thoughts { is_sure: false }),
            ("Final answer", Says::Answer { is_final: true }),
            ("assistantFinal", Says::Answer { is_final: true }),
            ("Final version", Says::Answer { is_final: true }),
            ("Summary", Says::Answer { is_final: false }),
            ("Action 2", Says::Answer { is_final: false }),
            ("Tool call 2:", Says::Answer { is_final: false }),
            ("User:", Says::User),
            ("User (simulated):", Says::User),
            ("Q:", Says::Result),
            ("### Instruction", Says::Task),
            ("Tool result", Says::Result),
            ("Assistant", Says::Model),
            ("=====END", Says::End),
        ] {
            assert_eq!(says(text).map(|(says, _)| says), Some(meant), "{text}");
        }
        for text in [
            "I think",
            "Thinking about it",
            "no thoughts",
            "the total",
            "",
            "...",
            "Final thoughts",
            "the user's thoughts",
            "Think of a number between one and ten and then add two",
            "Rethink",
            "thoughtful",
        ] {
            assert_eq!(says(text), None, "{text}");
        }
    }

    #[test]
    fn each_word_of_the_table_has_one_class_and_its_normal_form() {
        let mut seen: HashMap<&str, Class> = HashMap::new();
        for (class, words) in WORDS {
            for word in *words {
                assert!(seen.insert(word, *class).is_none_or(|before| before == *class), "{word}");
                let found = super::word(word, 0, word.len()).expect("a word");
                assert_eq!((found.normal.as_str(), found.end), (*word, word.len()), "{word}");
            }
        }
    }
}
