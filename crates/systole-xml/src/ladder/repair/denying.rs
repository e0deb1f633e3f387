//! Words and signs beside an element that announce it, and those that deny it, hold it back or choose: closed lists, in some 40
//! languages.
//!
//! Structure decides first (`frame.rs`, `between.rs`). Before an element, lists only permit: words that none of them has lead to
//! nothing. Of words that announce, those that deny or wait take the permission away; behind an element, where words are free,
//! only they count.
//!
//! Words are in their normal form (`words.rs`). One that ends in `-` stands for all that begin with it; one of a script without
//! spaces between words counts anywhere in a run of letters.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::words::{self, Joint, joint};

/// Words that deny an element, quote it, or make it an example or a possibility.
#[rustfmt::skip]
const DENYING: &[&str] = &[
    // English
    "abandon-", "abort-", "aside", "avoid-", "bad", "before", "cancelled", "canceled", "cannot", "considered",
    "considering",
    "counterexample", "deleted", "denied", "deprecated", "didn", "discard-", "disregard", "aren", "doesn", "don", "ain", "couldn", "hadn", "hasn", "haven", "needn", "weren", "draft-",
    "dropped",
    "dummy", "eg", "error", "example-", "excluded", "failed", "false", "forbidden", "hidden", "hypothetic-", 
    "ignor-", "illustrat-",
    "incorrect", "inst", "instance", "instead", "invalid", "isn", "later", "maybe", "might", "mock-", "mustn", "nah",
    "neither", "never", "nope",
    "obsolete", "observation", "old", "ooc", "otherwise", "outdated", "overruled", "perhaps", "possibly", "previous-",
    "prohibited", "pseudo-", "quot-",
    "refused", "reject-", "removed", "retract-", "revoked", "sample-", "scrap-", "should", "shouldn", "skip-", "skipped",
    "sketch", "spoiler",
    "superseded", "template", "todo", "undo", "undone", "unneeded", "unsent", "unused", "void", "wasn",
    "withdrawn", "withdrew", "won", "would",
    "wouldn", "wrong-", "wrote", "said", "unmeant", "dry", "simulat-", "suppose", "supposing", "imagine", "imagin-",
    "temp", "wip", "noop",
    "idea-", "guess-", "possibilit-", "proposal-", "propos-", "suggest-", "candidate-", "option-", "alternativ-",
    "variant-", "choice-",
    "either",
    "declin-", "disabled", "earlier", "exercise-", "kidding", "preview-", "refuse", "scenario-", "simulation-", "something", "syntax", "yesterday",
    // German
    "abgelehnt-", "alt", "alte", "alter", "altes", "beispiel-", "entwurf", "entwürfe", "falsch-", "früher-",
    "gelöscht-", "gestrichen", "hätte-", "idee-",
    "kein-", "möglich-", "nein", "nicht", "nie", "niemals", "ohne", "sonst", "später", "statt", "stattdessen", "storniert",
    "ungültig", "variante-",
    "muster", "vorlage", "verboten", "versuch-", "vielleicht", "vorher", "vorschlag", "vorschläge", "sähe", "wäre", "würde-", "zurückgezogen",
    "konzept", "skizze", "verworfen-",
    // Romance
    "ancien", "ancienne", "annul-", "auparavant", "aucun", "aucune", "avant", "brouillon-", "choix", "esquisse", "essai",
    "modèle", "exemple-", "faux", "idée-", "incorrecte", "interdit-", "jamais",
    "ne", "pas", "peut", "plutôt", "proposition", "rejet-", "sans", "serait", "supprimé-", "refusé-",
    "modelo", "plantilla", "antes", "anterior", "boceto", "borrador-", "cancelad-", "descartad-", "ejemplo-", "eliminad-", "equivocad-",
    "incorrect-", "intento", "jamás", "ningún", "ninguna", "nunca", "opción", "opciones",
    "prohibid-", "propuesta", "quizá", "quizás", "rechazad-", "sería", "sin", "sugerencia", "viejo", "vieja", "falso",
    "errad-", "exemplo-", "nao", "não", "opção", "opções", "proibid-", "proposta", "rascunho-", "rejeitad-", "sem",
    "talvez", "tentativa", "velho", "velha",
    "modello", "annullat-", "bozza", "bozze", "esempio", "esempi", "forse", "mai", "opzion-", "proibito", "rifiutat-", "sbagliat-",
    "scartat-", "senza", "tentativo", "vecchi-", "vietat-", "errat-",
    "schiță", "ciornă", "exemplu", "greșit", "fără", "poate", "vechi",
    // Dutch, Scandinavian, Finnish
    "concept", "fout", "geen", "misschien", "niet", "nooit", "oud", "oude", "ontwerp", "poging", "verkeerd-", "voorbeeld",
    "zonder", "voorstel", "schets",
    "aldrig", "ej", "eksempel", "exempel", "fel", "felaktig", "forkert", "forslag", "försök", "förslag", "feil", "gammal",
    "gammel", "icke", "ikke", "inte", "kanske",
    "kanskje", "kladd", "måske", "nej", "nei", "skiss", "utan", "uten", "utkast", "udkast", "kladde", "ei", "ehkä",
    "esimerk-", "luonnos", "väärä", "älä",
    // Slavic
    "без", "бы", "вариант-", "возможно", "идея", "надо", "напр", "например", "не", "неверн-", "неправильн-", "нельзя",
    "нет", "никогда", "ошибк-", "отклонен-", "отменен-", "отменён-", "попытк-",     "предложени-", "пример-", "раньше", "стар-", "удален-", "удалён-", "черновик-", "чернетк-", "можливо", 
    "неправильно", "приклад", "ні", "ніколи", "эскиз", "набросок",
    "bez", "błąd", "błędn-", "może", "nieprawidłow-", "nigdy", "odrzucon-", "opcja", "propozycja", "przykład-",
    "próba", "stary", "szkic-", "wariant", "zamiast", "źle",
    "koncept", "možná", "např", "návrh", "nikdy", "příklad", "pokus", "starý", "špatn-", "varianta", "чернова",
    // Chinese, Japanese, Korean
    "之前", "仅", "僅", "示意", "参考", "是否", "请确认", "待确认", "のみ", "예시",
    "不", "例", "假设", "假設", "勿", "别发", "别运", "未发", "未執", "未执", "草案", "取消", "可能", "否", "备选", "備選", "废", "廢", "建议", "建議", "方案", "旧", "舊", "未",
    "样例", "模板", "範例", "没", "沒", "禁止", "草", "被拒", "选项", "選項", "错", "錯",
    "尝试", "嘗試", "版本", "候选", "候選", "也许", "或许", "想法", "提案", "下書き", "ない", "ません", "仮", "没案", "間違", "古い", "試し", "候補",
    "選択肢", "ダメ", "駄目", "いいえ", "かも", "たとえば", "サンプル",
    "초안", "아니", "않", "안됨", "예를", "예제", "오류", "잘못", "취소", "옵션", "후보", "제안", "금지", "이전", "시안", "버전", "말고", "하지마",
    "거부",
    // Others
    "bozuk", "belki", "değil", "deneme", "eski", "hayır", "iptal", "olmasın", "seçenek", "taslak", "yanlış",
    "yasak", "öneri", "örnek", "örneğin",
    "hibás", "javaslat", "nem", "példa", "például", "piszkozat", "régi", "rossz", "soha", "talán", "vázlat", "δεν",
    "μη", "μην", "όχι", "παράδειγμα", "παλιό", "πρόχειρο", "λάθος", "ίσως", "ποτέ", "σχέδιο",
    "لا", "ليس", "لن", "لم", "مثال", "مثلا", "مسودة", "خطأ", "خاطئ", "قديم", "ربما", "خيار", "ملغى", "مرفوض",
    "ممنوع", "نه", "پیش", "غلط", "شاید", "نمونه", "گزینه",
    "לא", "אל", "דוגמה", "טיוטה", "שגוי", "אולי", "ישן", "לדוגמה",
    "नहीं", "न", "मत", "उदाहरण", "गलत", "मसौदा", "शायद", "पुराना", "विकल्प", "ไม่", "ตัวอย่าง", "ร่าง",
    "ผิด", "ห้าม", "อาจ", 
    "bukan", "contoh", "jangan", "konsep", "mungkin", "salah", "tidak", "lama", "batal", "không", "nháp", "đừng",
    "dụ", "sai", "cũ",
    "draf", "rasimu", "mfano", "usitume", "labda", "halimbawa", "huwag", "mali", "drög", "dæmi", "ekki", "kannski", "röng",
    "esborrany", "mustand", "näide", "vale", "melnraksts", "piemērs", "nepareizi", "juodraštis", "pavyzdys", "neteisinga",
    "nacrt", "primjer", "primer", "nemoj", "pogrešno", "osnutek", "príklad", "shembull", "mos", "drafft", "dréacht", "sampla",
    "zirriborro", "adibidea", "maling", "burador",
];

/// Words that make an act before an element wait: for a condition or a time.
#[rustfmt::skip]
const CONDITIONAL: &[&str] = &[
    "assuming", "before", "case", "depending", "if", "later", "once", "pending", "provided", "soon", "suppose", "supposing", "till", "tomorrow", "unless",
    "until", "when", "whenever", "falls", "sobald", "sofern", "wenn", "bevor", "später", "demain", "dès", "lorsque", "quand",
    "si", "cuando", "mañana", "caso", "quando", "assim", "appena", "se", "als", "indien", "wanneer", "zodra", "när", "om", "når", "hvis",
    "если", "когда", "завтра", "якщо", "коли", "gdy", "jeśli", "kiedy", "až", "když", "pokud", "eğer", "ha", "αν", "όταν",
    "إذا", "عندما", "لو", "اگر", "אם", "כאשר", "अगर", "यदि", "जब", "ถ้า", "เมื่อ", "jika", "ketika", "nếu", "khi",
    "如果", "确认后", "確認後", "完成后", "之后", "以后", "明天", "もし", "場合", "明日", "たら", "만약", "내일",
];

/// Words by which a sentence supposes something.
#[rustfmt::skip]
const SUPPOSING: &[&str] = &[
    "brainstorming", "deciding", "hesitat-", "holding", "inclined", "leaning", "torn", "undecided", "unsure",
    "exercise-", "hypothetic-", "imagine", "maybe", "perhaps", "pretend", "suppose", "supposing", "vielleicht", "peut", "quizá", "quizás",
    "talvez", "forse", "misschien", "kanske", "возможно", "może", "belki", "可能", "也许", "或许", "かも",
];

/// Words by which a model says that it acts, or shows what it acts by.
#[rustfmt::skip]
const ACTING: &[&str] = &[
    "ado", "attached", "below", "here", "i", "let", "we", "folgend-", "hier", "hiermit", "ich", "nachfolgend", "wir", "hierbij", "ik", "wij", "här", "her", "jag", "jeg",
    "vi", "j", "je", "nous", "voici", "voilà", "adjunto", "aquí", "busco", "compro", "consulto", "ejecuto", "envío", "hago", "llamo",
    "mando", "pago", "pido", "procedo", "realizo", "vamos", "voy", "aqui", "envio", "executo", "faço", "segue", "vou", "cerco", "ecco", "effettuo", "eseguo",
    "faccio", "invio", "ordino", "iată", "oto", "płacę", "składam", "wykonuję", "wysyłam", "zamawiam", "objednávám", "posílám", "zde",
    "вот", "выполняю", "делаю", "заказываю", "запускаю", "ищу", "мы", "оформляю", "отправляю", "плачу", "я", "ось", "işte", "íme",
    "tässä", "ορίστε", "إليك", "سأ-", "הנה", "मैं", "यहाँ", "रहा", "นี่คือ", "ฉัน", "đây", "tôi", "berikut", "saya",
    "我", "马上", "立即", "立刻", "正在", "以下", "如下", "现在", "現在", "为您", "こちら", "承知", "いたします", "致します", "します", "주문", "여기",
];

/// Ends of the words with which a model says that it acts, in languages whose verbs stand last.
const ACTING_ENDS: [&str; 7] = ["yorum", "yoruz", "ます", "합니다", "겠습니다", "हूँ", "हूं"];

/// Ends of the words with which Romance languages suppose: `serait`.
const SUBJUNCTIVE_ENDS: [&str; 5] = ["rait", "raient", "ría", "rían", "rebbe"];

/// Words by which a sentence explains an act, or leaves it to the reader.
#[rustfmt::skip]
const EXPLAINING: &[&str] = &[
    "how", "why", "yourself", "kannst", "können", "wie", "comment", "pouvez", "peux", "cómo", "puede", "puedes", "puoi", "pode", "как", "можешь", "можете",
    "如何", "可以", "できます",
];

/// Words in `-ing` that no act begins with.
#[rustfmt::skip]
const NO_ACTS: [&str; 20] = [
    "according", "assuming", "awaiting", "barring", "considering", "depending", "during", "everything", "excluding", "existing",
    "including", "missing", "anything", "nothing", "something", "pending", "providing", "supposing", "testing", "waiting",
];

/// Words by which an act is only possible.
const POSSIBLE: [&str; 9] = ["could", "may", "might", "would", "hätte", "könnte", "wäre", "würde", "бы"];

/// Words behind the one that names the actor by which the act is past, beside those in `-ed`.
#[rustfmt::skip]
const PAST: [&str; 19] = [
    "did", "found", "gave", "got", "had", "heard", "made", "ran", "read", "said", "saw", "sent", "took", "told", "was", "were", "wrote",
    "hatte", "war",
];

/// Words behind the one that names the actor that belong to its verb.
#[rustfmt::skip]
const AUXILIARY: [&str; 31] = [
    "am", "are", "be", "been", "can", "do", "going", "gonna", "have", "hereby", "just", "ll", "m", "me", "must", "need", "re", "s",
    "shall", "should", "simply", "still", "therefore", "to", "us", "ve", "want", "will", "would", "have", "d",
];

/// Verbs with which the model says what it thinks, quotes or offers, not what it does.
#[rustfmt::skip]
const REFLECTING: &[&str] = &[
    "assum-", "believ-", "brainstorm-", "consider", "explain", "inclined", "jot-", "leaning", "cite", "cites", "citing", "compare", "comparing", "debat-", "decid-", "discuss-", "doubt-", "hold", "hope", "hoping",
    "inten-", "leave", "leaving", "mean", "meaning", "paraphras-", "pause", "pausing", "plan", "planned", "planning", "ponder-", "pretend-", "ready", "recall-",
    "recommend-", "remember-", "tempted", "translat-", "wait", "waiting", "weigh-", "wonder-", "your",
    "ожидаю", "полагаю", "понимаю", "предлагаю", "предполагаю", "рекомендую", "советую", "считаю",
];

/// Words by which an act is a habit, or was done before, or nearly.
const HABITS: [&str; 9] =
    ["almost", "already", "always", "nearly", "normally", "often", "sometimes", "typically", "usually"];

/// Words by which something that is shown is of others.
const SOURCES: [&str; 9] = ["by", "from", "instruction", "original", "plan", "received", "returned", "wants", "wrote"];

/// Words of others that may be shown: `Here is Bob's request:`
const SPOKEN: [&str; 14] = [
    "call",
    "command",
    "comment",
    "email",
    "input",
    "instruction",
    "instructions",
    "mail",
    "message",
    "note",
    "prompt",
    "question",
    "request",
    "text",
];

/// Words by which an act is judged to be bad.
#[rustfmt::skip]
const JUDGING: &[&str] = &[
    "danger-", "fictional", "fraud-", "harmful", "illegal", "injection", "joke", "joking", "malicious", "phishing", "risky", "scam", "suspicious", "unsafe", "violat-",
    "gefährlich", "riskant", "dangereux", "risqué", "peligros-", "arriesgad-", "pericolos-", "perigos-", "опасн-", "危险", "危険", "위험",
];

/// Words of a version or an option of something, which deny no act in a whole sentence.
const VARIETIES: &[&str] =
    &["alternativ-", "choice-", "option-", "variant-", "版本", "方案", "选项", "選項", "버전", "옵션"];

/// Words of scripts without spaces by which a sentence forbids an act.
const PROHIBITING: &[&str] = &["ないで", "请勿", "請勿", "不要", "하지마", "마세요", "말아"];

/// Verbs of what the model does not know or find, which no act is.
const KNOWING: [&str; 9] = ["find", "identify", "know", "locate", "reach", "recall", "remember", "see", "understand"];

/// Verbs by which the model finds out what it doesn't know.
const INQUIRING: &[&str] =
    &["check-", "determine", "determining", "find", "look", "see", "test", "verify", "verifying"];

/// Words by which an act waits for a day or an hour, if the element has no such word.
#[rustfmt::skip]
const DEFERRING: &[&str] = &[
    "friday", "midnight", "monday", "noon", "saturday", "sunday", "thursday", "tonight", "tuesday", "wednesday", "weekend",
    "montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag", "mitternacht",
    "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche", "minuit",
    "lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo", "medianoche",
];

/// Names of a consent.
#[rustfmt::skip]
const CONSENT: &[&str] = &[
    "approval", "approvals", "approve", "authoris-", "authoriz-", "clearance", "confirm", "confirmation", "consent", "feedback", "light", "opinion", "permission", "review", "sign", "signature", "signoff",
    "bestätigung", "einverständnis", "freigabe", "genehmigung", "zustimmung", "approbation", "autorisation", "validation",
    "aprobación", "autorización", "confirmación", "permiso", "approvazione", "autorizzazione", "conferma", "permesso", "aprovação", "autorização",
    "confirmação", "одобрени-", "подтверждени-", "разрешени-", "согласи-",
];

/// Words by which a sentence needs something.
#[rustfmt::skip]
const NEEDING: &[&str] = &[
    "await-", "must", "need", "needed", "needs", "pending", "pendiente", "required", "requires", "seek-", "upon", "subject", "wait", "waiting", "waits",
    "benötig-", "braucht", "brauche", "wart-", "attend-", "besoin", "nécessite", "espero", "espera", "esperando", "necesit-", "requiere", "aspett-", "attendo",
    "serve", "aguard-", "precis-", "жд-", "ожида-", "нужн-", "требу-",
];

/// Words that point at what stands behind them.
#[rustfmt::skip]
const POINTING: &[&str] = &[
    "below", "following", "folgend-", "suivant-", "siguiente-", "seguente", "seguinte", "следующ-", "以下", "如下", "次の",
];

/// Words that deny a thing, not the act that is announced beside them: `I do it without the extras:`.
const LOOSE: [&str; 26] = [
    "again", "alt", "alte", "alten", "altes", "ancien", "bez", "error", "failed", "instead", "later", "no", "non",
    "ohne", "old", "previous", "sans", "sem", "senza", "should", "sin", "statt", "vieja", "viejo", "without", "без",
];

/// Words with which models close what they say.
#[rustfmt::skip]
const CLOSING: &[&str] = &[
    "another", "anything", "continue", "detail-", "else", "feel", "further", "happy", "help", "hesitate", "more", "need", "needed", "question-", "worry", "fragen", "gern", "gerne",
    "helfen", "sonst", "weiter-", "autre", "besoin", "hésitez", "algo", "ayuda", "dudas", "más", "dúvida-", "mais", "ajuda", "altro", "aiuto", "domande", "вопрос-", "ещё",
    "помочь", "pytania", "其他", "问题", "問題", "帮", "需要", "他に", "質問", "궁금", "도움",
];

/// Words behind an element by which it waits for a consent or a time, or is held back.
#[rustfmt::skip]
const WAITING: &[&str] = &[
    "ahead", "approv-", "await-", "before", "confirm", "confirmer", "confirmez", "confirma", "confirmas", "confirme", "demonstrat-", "format", "mistake", "only", "signature", "test", "permission", "disregard", "ignor-", "scratch", "bevor", "bestätige", "bestätigen", "bestätigst", "freigabe", "freigeb-", "genehmig-", "nur",
    "avant", "accord", "attente", "espera", "qu", "solo", "sólo", "apenas", "conferma", "confermi", "подтверд-", "потверд-",
    "请确认", "确认后", "您确认", "同意", "批准", "承認待", "確認して", "확인해",
];

/// Words by which a sentence behind an element speaks of sending it.
#[rustfmt::skip]
const SENDING: &[&str] = &[
    "ahead", "appl-", "approv-", "call", "called", "confirm-", "envi-", "envoy-", "execut-", "exécut-", "ejecut-", "invi-", "go", "order", "place", "placed", "proceed", "run", "send", "sent", "submit-",
    "use", "example", "template", "disregard", "ignor-", "scratch", "ausführen", "senden", "отправ-", "发送", "执行", "送信", "実行", "보내", "실행", "beispiel", "exemple", "ejemplo",
];

/// First words of a sentence behind an element that takes it back.
#[rustfmt::skip]
const TURNING: &[&str] = &[
    "actually", "cancel", "joking", "oops", "hmm", "scratch", "ignore", "disregard", "forget", "undo", "correction", "nevermind", "moment", "doch",
    "stopp", "vergiss", "ignoriere", "oubliez", "olvida", "стоп", "отмена", "ой", "待って", "等等", "sorry", "pardon", "kidding", "entschuldigung", "perdón", "perdona", "scusa",
];

/// The same, if a pause stands behind them: `No.`, `Wait, …`
#[rustfmt::skip]
const STOPPING: &[&str] = &[
    "no", "nope", "wait", "stop", "nein", "halt", "warte", "non", "attends", "espera", "espere", "nao",
    "não", "aspetta", "nee", "nej", "nei", "нет", "подожди", "nie", "不", "不对", "いいえ", "아니",
];

/// Words behind several elements that point at one of them.
#[rustfmt::skip]
const ORDINALS: &[&str] = &[
    "first", "second", "third", "latter", "former", "last", "one", "line", "erste", "ersten", "zweite", "zweiten",
    "première", "premier", "deuxième", "seconde", "primera", "primero", "segunda", "segundo", "первый", "второй", "第一", "第二",
];

/// Words that may take back what stands before them, judge it, or choose between several.
#[rustfmt::skip]
const CONTRARY: &[&str] = &[
    // English
    "aber", "actual", "actually", "after", "again", "alone", "alternatively", "attempt", "best", "better", "but", "chosen",
    "clean", "correct", "corrected",
    "correction", "counts", "edit", "either", "else", "expected", "fails", "final", "fix", "fixed", "forget", "good",
    "got", "hmm", "idea", "improved", "instead", "just", "latter", "meant", "mind", "mistake", "new",
    "only", "oops", "option", "or", "original", "place", "proper", "properly", "rather", "ready", "real", "refined",
    "replac-", "retry", "revised", "right", "safe", "safer", "sent", "so", "solely", "sorry",
    "supersed-", "take", "test", "these", "this", "thought", "true", "try", "typo", "updated", "version", "versus", "vs",
    "wait", "whole",
    "working", "wrong", "back", "cheap", "earnest", "pass", "round", "winner", "remedy", "replacement", "you", "mean", "cancel",
    // German, Romance, Slavic and others
    "besser", "doch", "echt-", "endgültig-", "endfassung", "korrekt-", "korrigiert", "lieber", "neu", "neue", "neuer",
    "neues", "nur", "oder", "richtig-", "sondern", "verbessert", "wahr",
    "berichtigt", "reinschrift", "schlussfassung", "fassung", "bonne", "bon", "corrigé", "corrigée", "définitif",
    "définitive", "mais", "mieux", "nouveau", "nouvelle", "ou", "propre", "repensant", "seul",
    "seulement", "vrai", "vraie", "juste", "buena", "bueno", "corregid-", "correcto", "correcta", "definitiv-", "mejor",
    "nuevo", "nueva", "pero", "pensé", "o", "solo", "sólo", "verdad", "lugar",
    "ersatz-", "ernst", "wort", "چاره", "certa", "certo", "corrigid-", "melhor", "mas", "novo", "nova", "corrett-", "giust-", "meglio", "migliore", "nuov-",
    "ma", "buona", "buono",
    "goed", "goede", "beter", "maar", "nieuw", "nieuwe", "juist", "juiste", "rätt", "riktig-", "bättre", "men", "ny",
    "nya", "nytt", "rigtig",
    "верн-", "или", "исправлен-", "лучше", "настоящ-", "но", "нов-", "передумал-", "правильн-", "только", "хорош-",
    "чистовик", "чистов-", "краще", "або", "але", "dobr-", "lepiej", "lepsz-", "lub", "now-", "poprawn-", "popraw-",
    "właściw-", "czystopis",
    "správn-", "lepší", "nov-", "opraven-",
    "或", "改", "新", "更正", "正确", "正確", "终稿", "終稿", "修正", "最终", "最終", "但", "只", "清", "正解", "本番", "正しい",
    "または", "新しい", "いい方", "良い", "清書", "정답", "진짜", "수정", "또는", "올바", "새", "최종", "하지만",
    "ama", "daha", "doğru", "düzelt-", "iyi", "son", "veya", "yeni", "jó", "helyes", "javított", "új", "vagy", "σωστ-",
    "καλύτερ-", "τελικ-", "νέο", "ή", "صحيح", "أو", "جديد", "نهائي", "أفضل", "الصحيح", "لكن", "או", "נכון", "חדש", "סופי",
    "אבל",
    "চিন্তা", "উত্তর", "wazo", "jibu", "აზრი", "პასუხი", "सही", "बेहतर", "नया", "या", "अंतिम", "ถูก", "ใหม่", "benar", "atau", "baru", "lebih", "đúng", "hoặc", "mới", "cuối",
];

/// Words that offer several elements, of which not all are meant, or choose one of them; before the first or behind the last.
#[rustfmt::skip]
const CHOOSING: &[&str] = &[
    "alternativ-", "best", "candidate-", "choice-", "choos-", "chose", "decision", "draft-", "either", "former", "latter",
    "mistake", "option-", "pick", "picks", "prefer", "preferred", "replac-",
    "supersed-", "typo", "variant-", "versions", "vs", "which", "correction", "corrected", "fixed", "ignore", "wrong",
    "only",
    "auswahl", "entweder", "entscheide-", "entwurf", "falsch-", "wahl", "wähl-", "alternative-", "möglichkeiten", "statt",
    "nur", "choisi-", "choix", "soit", "brouillon", "seulement", "elegir", "elige", "elijo", "escoge-", "opciones",
    "escolh-", "scegli-", "scelta",
    "kies", "keuze", "välj", "vælg", "velg", "выбер-", "выбирай-", "выбор-", "выбираю", "вариант-", "wybierz", "wybieram",
    "wybór", "vyber-",
    "选择", "選擇", "选一", "二选一", "选项", "方案", "選ん", "選択", "どちら", "선택", "골라", "seç", "seçin", "válassz", "اختر", "اختيار", "בחר",
    "चुनें", "pilih", "chọn",
];

/// Words that may make the sentence before an element a mention of it: `You can send <a/>`.
#[rustfmt::skip]
const MENTIONING: &[&str] = &[
    "can", "could", "think", "guess", "believe", "doubt", "may", "might", "must", "shall", "called", "named", "element", "tag", "tags", "between", "use", "uses",
    "using", "like", "what", "who", "why", "when", "how", "about", "than",
    "understand-", "mean", "means", "earlier", "ago", "once", "was", "were", "had", "has", "have", "tried", "of", "with",
    "in",
    "kann", "können", "könnte-", "darf", "soll", "sollte-", "muss", "war", "hatte", "sagte", "peux", "peut", "pourrait",
    "puede-", "podría", "pode", "può", "можно", "можешь",
];

/// Words of labels and of the sentence before an element that announce it.
#[rustfmt::skip]
const LEADING: &[&str] = &[
    // English
    "aber", "again", "based", "but", "pero", "easy", "it", "of", "s", "that", "there", "what", "so", "once", "short", "summarize", "therefore", "thus", "hence", "required", "requested", "at", "results", "above", "got", "three", "two", "attempt", "away", "name", "parallel", "parameters", "right", "role", "try", "corrected", "fixed", "placed", "retry", "revised", "re", "ve", "am", "thank", "thanks", "waiting", "due", "both",
    "action", "actions", "additional", "all", "alright", "api", "argument", "arguments", "assistant", "begin", "below",
    "body", "boxed", "code", "command", "commands", "content", "corresponding", "data",
    "display", "done", "execute", "fine", "following", "further", "go", "goes", "great", "hello", "her", "hi",
    "invocation", "item", "items", "lookup", "message", "my", "new", "ok", "okay", "order", "orders", "output", "part",
    "payload", "perfect", "python", "please", "query", "queries", "reply", "request", "requests", "response", "result", "run", "say",
    "says", "see", "send", "stage", "start", "submit", "summary", "sure", "task", "text", "this", "title", "type",
    "update",
    "use", "value", "write", "xhtml", "xml", "yaml", "html", "json", "yes", "yep", "conclusion", "input",
    // German, Dutch, Scandinavian
    "antwort", "also", "an", "für", "zahlung", "überweisung", "lautet", "deshalb", "daher", "zusammenfassung", "bestelle", "sende", "führe", "meine", "meinen", "lägger", "okej", "prima", "jetzt",
    "aktion", "anfrage", "aufruf", "ausgabe", "auftrag", "befehl", "bestellung", "bestellungen", "ergebnis", "gern",
    "gerne", "hier", "ja", "jawohl", "klar", "nachricht", "natürlich", "schritt", "suche",
    "abfrage", "inhalt", "werkzeug", "actie", "bericht", "bestelling", "hierbij", "stap", "uitvoer", "zoekopdracht", "här",
    "steg", "svar", "sökning", "beställning", "bestilling", "søgning",
    // Romance
    "paiement", "pago", "pagamento", "pour", "para", "accord", "alors", "así", "donc", "então", "entonces", "que", "quindi", "résumé", "resumen", "resumo", "riassunto", "bon", "très", "mon", "ma", "esta", "este", "es", "mi", "minha", "mia", "va", "bene", "perfecto", "bueno",
    "appel", "bien", "commande", "commandes", "entendu", "étape", "oui", "recherche", "requête", "sortie", "sûr", "voici",
    "voilà", "aquí", "búsqueda", "claro", "consulta", "llamada", "mensaje", "orden", "paso", "pedido", "salida",
    "sí", "acción", "aqui", "busca", "chamada", "mensagem", "ordem", "passo", "pesquisa", "saída", "ação", "sim", "azione",
    "certo", "chiamata", "comando", "ecco", "messaggio", "ordine", "ricerca", "richiesta", "sì",
    // Slavic
    "мой", "моя", "готово", "поэтому", "итог", "это", "dobře", "jasne", "tady",
    "вот", "вызов", "вывод", "да", "действие", "заказ", "запрос", "команда", "конечно", "поиск", "результат", "сообщение",
    "хорошо", "шаг", "ось", "замовлення", "запит", "oto", "krok", "polecenie", "tak", "wynik", "wyszukiwanie",
    "zamówienie", "zapytanie", "dotaz", "objednávka", "zde",
    // Chinese, Japanese, Korean
    "第", "明白", "收到", "因此", "所以", "总结", "まとめ", "요약",
    "下单", "我", "回答", "回复", "答案", "回覆", "下單", "以下", "任务", "内容", "動作", "动作", "命令", "如下", "好的", "好", "执行", "指令", "搜索", "操作", "查询", "查詢", "步骤", "消息", "结果",
    "訂單", "订单", "请求", "调用", "輸出", "输出", "はい", "了解", "実行", "手順", "承知", "検索", "次", "注文", "結果", "出力", "呼び出し",
    "검색", "결과", "네", "다음", "단계", "명령", "실행", "알겠", "요청", "주문", "출력", "호출",
    // Others
    "यह", "इसका", "उत्तर", "ऑर्डर", "ठीक", "है", "baik", "được", "rồi",
    "adım", "arama", "işte", "sipariş", "sonuç", "çağrı", "tamam", "rendelés", "keresés", "íme", "parancs", "بحث", "حسنا",
    "طلب", "نعم", "إليك", "خطوة", "نتيجة", "חיפוש", "הזמנה", "הנה", "כן", "खोज", "आदेश", "हाँ", "ค้นหา", "คำสั่ง",
    "pencarian", "perintah", "pesanan", "ya", "tìm", "lệnh",
];

/// Signs that deny what they stand beside, leave it open, or mean thoughts.
pub(super) const SIGNS: [char; 25] = [
    '❌', '🚫', '⛔', '✗', '✘', '✖', '✕', '❎', '👎', '☐', '☒', '◻', '▢', '🗑', '🛑', '🔴', '💭', '🤔', '🗯', '❓', '❔',
    '🧠', '📝', '̶', '⌫',
];

/// Words of a list in their normal form, by the way in which they are compared.
#[derive(Default)]
struct Lexicon {
    whole: HashSet<String>,
    stems: Vec<String>,
    /// Words of scripts without spaces.
    runs: Vec<String>,
}

impl Lexicon {
    fn new(list: &[&str]) -> Self {
        let mut lexicon = Self::default();
        for entry in list {
            let normal: String = words::words(entry).map(|(.., word)| word).collect();
            match entry {
                stem if stem.ends_with('-') => lexicon.stems.push(normal),
                run if run.starts_with(is_unspaced) => lexicon.runs.push(normal),
                _ => drop(lexicon.whole.insert(normal)),
            }
        }
        lexicon
    }

    fn has(&self, word: &str) -> bool {
        self.whole.contains(word)
            || self.stems.iter().any(|stem| word.starts_with(stem.as_str()))
            || (word.contains(is_unspaced) && self.runs.iter().any(|run| word.contains(run.as_str())))
    }
}

static DENIES: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(DENYING));
static CONDITIONS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(CONDITIONAL));
static SUPPOSES: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(SUPPOSING));
static ACTS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(ACTING));
static CLOSES_TALK: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(CLOSING));
static WAITS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(WAITING));
static EXPLAINS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(EXPLAINING));
static REFLECTS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(REFLECTING));
static JUDGES: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(JUDGING));
static VARIES: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(VARIETIES));
static PROHIBITS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(PROHIBITING));
static INQUIRES: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(INQUIRING));
static DEFERS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(DEFERRING));
static CONSENTS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(CONSENT));
static NEEDS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(NEEDING));
static POINTS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(POINTING));
static SENDS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(SENDING));
static TAKES_BACK: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(CONTRARY));
static CHOOSES: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(CHOOSING));
static MENTIONS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(MENTIONING));
static LEADS: LazyLock<Lexicon> = LazyLock::new(|| Lexicon::new(LEADING));

/// Returns whether a word denies, quotes or questions the element beside it, or makes it depend on something.
pub(super) fn denies(word: &str) -> bool {
    negates(word) || conditions(word)
}

/// Returns whether a word denies, quotes or questions the element beside it.
pub(super) fn negates(word: &str) -> bool {
    words::is_denial(word) || DENIES.has(word) || SUBJUNCTIVE_ENDS.iter().any(|end| word.ends_with(end))
}

/// Returns whether a word makes the act of a sentence wait for a condition or a time.
pub(super) fn conditions(word: &str) -> bool {
    CONDITIONS.has(word)
}

/// Returns whether a sentence with this word supposes something.
pub(super) fn supposes(word: &str) -> bool {
    SUPPOSES.has(word)
}

/// Returns whether a word names the model as the one who acts, or shows what it acts by.
pub(super) fn names_actor(word: &str) -> bool {
    ACTS.has(word)
}

/// Returns whether a word says what the model is doing: `Ordering`.
pub(super) fn is_doing(word: &str) -> bool {
    word.len() > 5 && word.ends_with("ing") && !NO_ACTS.contains(&word) && !denies(word) && !REFLECTS.has(word)
}

/// Returns whether a word belongs to the verb of a sentence: `I am going to …`
pub(super) fn is_auxiliary(word: &str) -> bool {
    AUXILIARY.contains(&word)
}

/// Returns whether a verb says what the model thinks, quotes or offers: `I wonder`.
pub(super) fn is_reflection(verb: &str) -> bool {
    REFLECTS.has(verb) || words::is_thought(verb)
}

/// Returns whether an act is a habit by this word.
pub(super) fn is_habit(word: &str) -> bool {
    HABITS.contains(&word)
}

/// Returns whether something that is shown is of others by this word: `Here is the email from Bob:`
pub(super) fn is_source(word: &str) -> bool {
    SOURCES.contains(&word)
}

/// Returns whether this is a word of a speaker that may be shown.
pub(super) fn is_spoken(word: &str) -> bool {
    SPOKEN.contains(&word)
}

/// Returns whether an act is judged to be bad by this word.
pub(super) fn judges(word: &str) -> bool {
    JUDGES.has(word)
}

/// Returns whether a word names a version or an option of something.
pub(super) fn is_variety(word: &str) -> bool {
    VARIES.has(word)
}

/// Returns whether a sentence forbids an act by this word.
pub(super) fn prohibits(word: &str) -> bool {
    PROHIBITS.has(word)
}

/// Returns whether a verb that is denied says what the model does not know.
pub(super) fn is_knowing(verb: &str) -> bool {
    KNOWING.contains(&verb)
}

/// Returns whether the model finds out something by this verb.
pub(super) fn inquires(verb: &str) -> bool {
    INQUIRES.has(verb)
}

/// Returns whether an act waits for a day or an hour by this word.
pub(super) fn defers(word: &str) -> bool {
    let hour = word.strip_suffix("pm").or_else(|| word.strip_suffix("am"));
    DEFERS.has(word) || hour.is_some_and(|hour| !hour.is_empty() && hour.chars().all(char::is_numeric))
}

/// Returns whether a word names a consent.
pub(super) fn names_consent(word: &str) -> bool {
    CONSENTS.has(word)
}

/// Returns whether a sentence needs something by this word.
pub(super) fn needs(word: &str) -> bool {
    NEEDS.has(word)
}

/// Returns whether a word points at what stands behind it.
pub(super) fn points(word: &str) -> bool {
    POINTS.has(word)
}

/// Returns whether the first word of a sentence says that the model acts, as Slavic verbs do without a pronoun: `Отвечаю`.
pub(super) fn begins_as_act(word: &str) -> bool {
    ["аю", "яю", "ую"].iter().any(|end| word.ends_with(end)) && !is_reflection(word)
}

/// Returns whether the last word of a sentence says that the model acts.
pub(super) fn ends_as_act(word: &str) -> bool {
    ACTING_ENDS.iter().any(|end| word.ends_with(end))
}

/// Returns whether an act is past by the word behind its actor.
pub(super) fn is_past(word: &str) -> bool {
    PAST.contains(&word)
}

/// Returns whether a verb before its subject says that the model acts now: `lösche ich`, but neither `könnte ich` nor `habe ich`.
pub(super) fn is_act_before(verb: &str, subject: &str) -> bool {
    const HELPING: [&str; 14] = [
        "bin", "darf", "dürfen", "habe", "haben", "kann", "können", "mag", "muss", "müssen", "sind", "soll", "sollen",
        "wollen",
    ];
    matches!(subject, "ich" | "wir")
        && !(HELPING.contains(&verb)
            || is_possible(verb)
            || denies(verb)
            || verb.ends_with("te")
            || verb.ends_with("ten"))
}

/// Returns whether a word asks the reader for an answer: `Tell me if that works.`
pub(super) fn asks_reader(word: &str) -> bool {
    matches!(word, "know" | "tell" | "say" | "sag" | "sage" | "sagen")
}

/// Returns whether an act is only possible by this word.
pub(super) fn is_possible(word: &str) -> bool {
    POSSIBLE.contains(&word) || SUBJUNCTIVE_ENDS.iter().any(|end| word.ends_with(end))
}

/// Returns whether a word that denies may deny a thing beside the act.
pub(super) fn is_loose(word: &str) -> bool {
    LOOSE.contains(&word)
}

/// Returns whether a word stands in phrases with which models close what they say.
pub(super) fn closes_talk(word: &str) -> bool {
    CLOSES_TALK.has(word)
}

/// Returns whether a word asks for another element in place of one: `Would you prefer another size?`
pub(super) fn prefers(word: &str) -> bool {
    matches!(word, "instead" | "lieber" | "plutôt" | "prefer" | "rather")
}

/// Returns whether a word behind an element makes it wait for a consent, or holds it back.
pub(super) fn waits(word: &str) -> bool {
    WAITS.has(word)
}

/// Returns whether a word explains an act, or leaves it to the reader.
pub(super) fn explains(word: &str) -> bool {
    EXPLAINS.has(word)
}

/// Returns whether a word speaks of sending an element, or of what it is instead.
pub(super) fn names_sending(word: &str) -> bool {
    SENDS.has(word)
}

/// Returns whether a sentence that begins with this word takes back what stands before it.
pub(super) fn turns(first: &str) -> bool {
    TURNING.contains(&first)
}

/// Returns whether a sentence that begins with this word, and a pause, takes back what stands before it.
pub(super) fn stops_at(first: &str) -> bool {
    STOPPING.contains(&first)
}

/// Returns whether a word points at one of several elements.
pub(super) fn is_ordinal(word: &str) -> bool {
    ORDINALS.contains(&word)
}

/// Returns whether a word may take back an element before it, or tells of two elements which one is meant.
pub(super) fn is_contrary(word: &str) -> bool {
    denies(word) || TAKES_BACK.has(word)
}

/// Returns whether a word may take back an element before it, but says nothing against the one behind it.
pub(super) fn only_takes_back(word: &str) -> bool {
    TAKES_BACK.has(word) && !denies(word)
}

/// Returns whether a word offers elements to choose from, or chooses one.
pub(super) fn chooses(word: &str) -> bool {
    CHOOSES.has(word)
}

/// Returns whether a word may make the element behind its sentence a mention.
pub(super) fn mentions(word: &str) -> bool {
    MENTIONS.has(word)
}

/// Returns whether a word announces an element and says nothing about it.
pub(super) fn leads(word: &str) -> bool {
    matches!(joint(word), Joint::Joins | Joint::Nothing) || words::is_answer(word) || LEADS.has(word) || is_doing(word)
}

/// Tests for a character of a script that writes no spaces between words, or whose words take endings.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{e7f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_listed_once_and_alone() {
        for list in [
            DENYING,
            CONDITIONAL,
            SUPPOSING,
            ACTING,
            CLOSING,
            EXPLAINING,
            WAITING,
            SENDING,
            REFLECTING,
            INQUIRING,
            VARIETIES,
            JUDGING,
            PROHIBITING,
            DEFERRING,
            CONSENT,
            NEEDING,
            POINTING,
            TURNING,
            STOPPING,
            ORDINALS,
            CONTRARY,
            CHOOSING,
            MENTIONING,
            LEADING,
        ] {
            let mut seen = HashSet::new();
            for entry in list {
                assert!(seen.insert(entry), "{entry} is listed twice");
                assert_eq!(words::words(entry).count(), 1, "{entry}");
                assert_eq!(entry.to_lowercase(), *entry);
            }
        }
    }
}
