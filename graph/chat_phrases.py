"""The phrases by which the rules recognise what a message wants: patterns only, matched against one undressed line."""

from __future__ import annotations

import re

RUN_ID = r"[a-z0-9_]+-\d{4,8}(?:-\d{0,6}(?:-[0-9a-f]{0,4})?)?"
CANDIDATE_ID = r"(?:[a-z0-9_]+-\d{8}-\d{6}-[0-9a-f]{4}-)?\d{3,4}-\d{3}(?:-r\d+)?"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


POLITE_START = re.compile(
    r"^(?:(?:please|pls|hey|hi|hello|ok(?:ay)?|so|now|and|then|well|yes,|great|cool|thanks|warpsmith|kindly|just"
    r"|go ahead and|(?:could|can|would|will) you|i(?:'d| would) (?:like|love)(?: you)? to|i want(?: you)? to"
    r"|i need(?: you)? to|let'?s"
    r"|can i (?:see|have|get)|let me see|show me|tell me|give me|see)(?!\w|-)[,!:.]*\s+)+",
    re.IGNORECASE,
)
POLITE_END = re.compile(
    r"(?:[,.!?\s]*\s(?:please|pls|thanks|thank you|thx|for me|now|then|already|right now|at once|immediately|:\))"
    r"|(?<=[\w/)\]\"'`%µ])\s*[.!?]+)$",
    re.IGNORECASE,
)

PATH = re.compile(r"[\w./~\\-]*\w\.py\b", re.IGNORECASE)
OPTIMIZE = re.compile(
    r"\b(?:opti?mi[sz]\w*|optmi[sz]e|optimze|speed(?:ing)?[\s-]?up|accelerate|warpsmith|(?:make|get)\b.*\bfast(?:er)?"
    r"|(?:re)?tune|faster\s+kernels?|rerun|re-run|run\s+(?:it|that)\s+again|same\s+(?:again|module|one|thing))\b",
    re.IGNORECASE,
)
REFUSED = re.compile(
    r"\b(?:don'?t|do not|never|not to)\s+(?:\w+\s+){0,2}(?:optimi\w+|speed|accelerate|run|start|tune|fuse)\b",
    re.IGNORECASE,
)
QUESTION = re.compile(
    r"(?:what|why|how|who|when|where|which|does|do|is|are|should|did|has|was)\b", re.IGNORECASE
)
AGAIN = re.compile(
    r"\b(?:again|rerun|re-run|once more|same)\b|\b(?:opti?mi[sz]e|run|tune|accelerate|repeat)\s+(?:it|that)\b",
    re.IGNORECASE,
)
MORE = re.compile(r"\b(?:more|another|extra|longer|further|additional)\b", re.IGNORECASE)
FILLERS = frozenset(
    "a an the this that these my our your its it them me i i'd i'm we you please for on in at to of with and or "
    "but by as is are be so just use using used run running stay keep within time limit budget most max maximum "
    "up take takes spend than no more less do have has want need would like can could should will optimize "
    "optimise optimizing optimising optimized optimization module modules model class code file kernel kernels "
    "gpu gpus device cuda make get faster fast speed speed-up speedup accelerate tune give try find target "
    "targeting tolerance error errors relative absolute accuracy precision search searching following here below "
    "above pasted thing one again same rerun re-run once warpsmith then now also from there all go let let's only "
    "about around roughly exactly if possible arch architecture program programs candidate candidates generation "
    "generations population nvidia tensor core see run's work card per each it's under over stop after quickly torch "
    "pytorch".split()
)

_THE_RUN = r"(?:(?:the|this|that|my|current|last|latest)\s+)*(?:run|search|optimi[sz]ation)?"
_OF_RUN = rf"(?:\s+(?:(?:of|for|on|in|with|about)\s+)?{_THE_RUN}\s*(?:{RUN_ID})?)?"
_WINNER = (
    r"(?:(?:the|this|that|your)\s+)?(?:winner|winning\s+(?:kernel|program|candidate|idea)|best(?:\s+(?:one|candidate"
    r"|kernel|program|result))?|result|solution|kernel|program|it)(?:'s\s+idea)?"
)
_NOTE = (
    r"(?:\s*[,:;.\-–—]\s*|\s+(?=because|since|as\b|for\b|with\b|note\b))(?!\s*(?:if|unless|when|once|only|not|but|after)\b)"
    r"(?:note\s*:?\s*)?(?P<note>.+)"
)
"""A person's reason. One with a condition is none: nobody can promise to keep it."""
_FAILING = (
    r"\bfail\w*|\bwrong|\bincorrect|\bslow\w*|\breject\w*|\brefut\w*|(?:\b(?:not|no)|n't)\s+(?:\w+\s+){0,2}(?:faster|improve\w*|better"
    r"|win\w*|gain\w*|work\w*|pass\w*)|no\s+\w*\s*winner|without\s+a\s+winner|nothing|crash\w*|worse|invalid|broken"
    r"|suspicious|bad"
)
EXPLICIT_HINT = re.compile(
    r"(?:(?:please|hey|ok(?:ay)?|now|maybe|perhaps|can you|could you)[,!]?\s+)*"
    r"(?:try\s+(?:out\s+)?th(?:is|e following)(?:\s+idea)?\s*[:,\-–—]\s*"
    r"|(?:here(?:'s| is)\s+)?(?:an?|my|one|another)?\s*(?:idea|hint|suggestion|advice|tip)"
    r"(?:\s+for\s+\w+(?:\s+\w+)?)?\s*[:\-–—]\s*"
    r"|tell\s+(?:the\s+)?(?:agents?|coders?|planners?|models?)\s+(?:to\s+|that\s+)?)(?P<hint>.+)",
    re.IGNORECASE | re.DOTALL,
)
TRY = re.compile(
    r"(?:(?:maybe|perhaps)\s+|you\s+(?:could|should|might)\s+(?:also\s+)?|(?:how|what)\s+about\s+|have\s+you\s+|did\s+you\s+)*"
    r"(?:try|tried|trying|consider(?:ing|ed)?)\s+(?!(?:it|that|again|harder|once|more|this|another)\b(?:\s+\w+)?$)"
    r"(?:this\s+idea\s+|the\s+idea\s+of\s+|out\s+)?(?P<hint>.+)",
    re.IGNORECASE,
)
RESUME = re.compile(
    rf"(?:resume|continue|go\s+on|carry\s+on|keep\s+(?:going|searching|working)|unpause|proceed)\b"
    rf"(?:\s+(?:with\s+)?(?:it|{_THE_RUN}))?(?:\s*(?P<run>{RUN_ID}))?",
    re.IGNORECASE,
)

DISMISS = _compiled(
    r"never\s*mind|forget\s+(?:it|that|about\s+it)|no|nope|no,?\s+(?:thanks|thank\s+you)|thanks|thank\s+you"
    r"(?:\s+very\s+much)?|thx|drop\s+it|leave\s+it|skip\s+it|cancel\s+that"
)
CONFIRM = _compiled(
    r"yes|y|yeah|yep|sure|ok(?:ay)?|do\s+(?:it|so|that)|go(?:\s+ahead)?|start(?:\s+it)?|go\s+for\s+it"
)
HELP = _compiled(
    r"\?|help(?:\s+me)?|commands?|usage|examples?|hello|hi|hey|good\s+(?:morning|day|evening)"
    r"|what\s+can\s+(?:you|i)\b.*|how\s+(?:do|can|should|would)\s+(?:i|we|you)\s+(?!it\b).*|(?:can|should|may|could)\s+(?:i|we)\b.*"
    r"|what\s+(?:happens|if|would\s+happen)\b.*|who\s+are\s+you|what\s+(?:is\s+this|are\s+you)"
)
LIST_RUNS = _compiled(
    r"(?:(?:list|show|see|which|what)\s+)?(?:all\s+)?(?:of\s+)?(?:the\s+|my\s+)?(?:past\s+|previous\s+|old\s+)?runs"
    r"(?:\s+(?:are\s+there|do\s+(?:i|you)\s+have|exist|did\s+(?:i|you)\s+\w+))?"
)
APPROVE = _compiled(
    rf"(?:approved?|accept(?:ed)?|lgtm|looks\s+good(?:\s+to\s+me)?)(?:\s+{_WINNER})?(?:{_NOTE})?"
)
REJECT = _compiled(rf"(?:reject(?:ed)?|decline|refuse|disapprove|discard)(?:\s+{_WINNER})?(?:{_NOTE})?")
MARK = _compiled(rf"(?P<verb>pin|kill|release)\s+(?:candidate\s+)?(?P<candidate>{CANDIDATE_ID})(?:{_NOTE})?")
ROLL_BACK = _compiled(
    rf"(?:roll\s*-?\s*back|go\s+back|return)\s+to\s+(?:candidate\s+)?(?P<candidate>{CANDIDATE_ID})(?:{_NOTE})?"
)
STOP = _compiled(
    r"(?:stop|cancel|abort|halt|pause|interrupt|end|kill|terminate)(?<!end)(?<!kill)"
    r"(?:\s+(?:it|this|that|now|searching|working|everything|(?:(?:the|this|that|my|current)\s+)*(?:run|search|work)))*"
    rf"(?:\s+(?P<run>{RUN_ID}))?"
    rf"|(?:end|kill)\s+(?:it|{_THE_RUN})(?:\s*(?P<other>{RUN_ID}))?|(?:that'?s\s+|that\s+is\s+)?enough"
)
EXPORT = _compiled(
    rf"(?:export|save|write|store|dump)(?:\s+(?:again|out|{_WINNER}|(?:(?:the|this|that)\s+)?(?:code|run|file)))*"
    rf"(?:\s+(?:of\s+)?(?P<run>{RUN_ID}))?"
    r"(?:\s+(?:to|into|in|under|at)\s+(?:(?:the\s+)?(?:folder|directory)\s+)?(?P<folder>.+))?"
)
WHY_FAILED = _compiled(
    rf"why(?:\s+not)?(?:\s+(?:run\s+)?(?:{RUN_ID}|{CANDIDATE_ID}))?|why\b.*(?:{_FAILING})\b.*"
    rf"|why\b.*(?<![\w-]){CANDIDATE_ID}(?![\w-]).*"
    r"|what\s+(?:went\s+wrong|failed|was\s+the\s+(?:problem|error|failure))\b.*|what(?:'s|\s+is|\s+was)\s+wrong\b.*"
    rf"|(?:which|what)\s+candidates?\s+failed|what\s+happened\s+(?:to|with|in)\s+.+|(?:show|candidate|see)?\s*{CANDIDATE_ID}"
    r"|(?:the\s+)?(?:reason|cause)s?\s+(?:of|for|why)\s+.*(?:fail|error).*"
)
EXPLAIN = _compiled(
    rf"(?:explain|describe|details?|walk\s+me\s+through)(?:\s+(?:of|about|why|how)?\s*(?:candidate\s+)?(?:{_WINNER}"
    rf"|{CANDIDATE_ID}))?(?:\s+(?:works?|won|wins|is\s+fast\w*))?{_OF_RUN}"
    rf"|(?:(?:who|what|which(?:\s+one|\s+candidate)?)\s+(?:won|wins|is\s+(?:winning|the\s+winner))|why\s+did\s+\w+\s+win"
    rf"|(?:what(?:'s|\s+is|\s+was)\s+)?(?:about\s+)?(?:the\s+)?(?:winner(?:'s\s+idea)?|winning\s+\w+)){_OF_RUN}"
    rf"|why\s+(?:is|was|does|did)\s+{_WINNER}\s+(?:so\s+|the\s+)?(?:fast\w*|quick\w*|win|won|better|best)\b.*"
    rf"|how\s+(?:does|did|is|was)\s+{_WINNER}\s+(?:work|win|so\s+fast|fast\w*|do\s+it).*"
    r"|what\s+did\s+(?:you|it)\s+(?:find|do|change)|(?:what(?:'s|\s+is|\s+was)\s+)?(?:the\s+)?(?:bottleneck|lineage|profile)"
)
STATUS = _compiled(
    rf"(?:(?:what(?:'s|\s+is)|show|check)\s+)?(?:the\s+|your\s+)?(?:current\s+)?(?:status|state|progress|situation)"
    rf"(?:\s+report)?{_OF_RUN}"
    rf"|how(?:'s|\s+is|\s+are|\s+does|\s+did|\s+goes)?\s+(?:(?:it|things|this|that|everything|we|you)|{_THE_RUN}\s*{RUN_ID}"
    rf"|(?:the|this|that|my)\s+(?:run|search))\s*(?:going|doing|coming\s+along|look(?:ing)?|getting\s+on|go)?(?:\s+so\s+far)?"
    r"|how\s+(?:far|long|much|many)\b.*|(?:is|are|has)\s+(?:it|the\s+run|you|we|this|that)\s+(?:all\s+)?"
    r"(?:done|finished|ready|there|still\s+\w+|running|over|ended|stopped)(?:\s+yet)?|(?:any\s+)?(?:news|updates?)(?:\s+yet)?"
    r"|(?:what(?:'s|\s+is|\s+are|\s+was)?\s+)?(?:the\s+)?best(?:\s+(?:time|speedup|candidate|result))?\s*(?:so\s+far|yet)?"
    r"|what(?:'s|\s+is)\s+(?:happening|going\s+on|it\s+doing|up|the\s+(?:speedup|cost|spend))|speedup|cost|spend"
    r"|(?:did|does|has)\s+(?:it|the\s+run)\s+(?:work|finish|end|improve|succeed|pass)\w*(?:\s+yet)?"
    rf"|where\s+(?:is|are)\s+(?:the\s+|my\s+)?(?:export|result|program|file|winner)s?|(?:show\s+)?{_THE_RUN}\s*{RUN_ID}"
)
USE_RUN = _compiled(
    rf"(?:use|switch\s+to|select|open|go\s+to|look\s+at|talk\s+about)\s+{_THE_RUN}\s*(?P<run>{RUN_ID})"
)
