// Scores of search results: Sphinx's own, and first of all guides whose title or headings contain the words.
var Scorer = {
  score: ([page, , , , score]) => (score > 5 && /^(getting_started|guide|howto)/.test(page) ? score + 20 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
