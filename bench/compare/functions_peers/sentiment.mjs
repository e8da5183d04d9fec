// functions/sentiment/cpp in JavaScript, for servers that run that: the same results on functions/sentiment/tests/cases.json.
// lexicon.mjs is written by bench/compare/functions out of functions/sentiment/lexicon.
import { WORDS, EMOTICONS } from "./lexicon.mjs";

const LEXICON = new Map(WORDS.map(([text, polarity, subjectivity, intensity, adverb]) =>
  [text, { text, polarity, subjectivity, intensity, adverb }]));
const END_OF_PARAGRAPH = "END-OF-SENTENCE";
const MARKS = new Set(",;:!?()[]{}`'\"@#$^&*+-|=~_");
const ABBREVIATIONS = new Set(("a. adj. adv. al. a.m. c. cf. comp. conf. def. ed. e.g. esp. etc. ex. f. fig. gen. id. i.e. int. " +
  "l. m. Med. Mil. Mr. n. n.q. orig. pl. pred. pres. p.m. ref. v. vs. w/").split(" "));
const ENDS = new Set([".", "!", "?", "...", END_OF_PARAGRAPH]);
const CLOSES = new Set([...ENDS, ")", "\u201D", "\u2019"]);
const NEGATIONS = new Set(["no", "not", "never"]);

// "XD" is all letters, and those are never looked up. Of two that are equal in lower case the first counts.
const POLARITIES = new Map();
for (const [text, polarity] of EMOTICONS) {
  const lowered = text.toLowerCase();
  if (lowered !== "xd" && !POLARITIES.has(lowered)) POLARITIES.set(lowered, polarity);
}
const escaped = (c) => c.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
// In the order in which they are tried, a blank allowed before each character, and no word behind.
const EMOTICON = new RegExp(`(?:${EMOTICONS.map(([text]) => [...text].map(escaped).join(" ?")).join("|")})(?= |$)`, "gu");
const IRONY = /\( ?! ?\)/g;
const TO_NORMALIZE = /((?:\r?\n)+)|([\x09-\x0d\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000])|n't|['"\u2018\u2019\u201C\u201D]/g;

function normalized(text) {
  return text.replace(TO_NORMALIZE, (found, newlines, space) => {
    if (newlines !== undefined) return newlines.indexOf("\n") === newlines.length - 1 ? " " : ` ${END_OF_PARAGRAPH} `;
    if (space !== undefined) return " ";
    return found === "n't" ? " n ' t" : ` ${found} `;
  });
}

const isAbbreviation = (t) =>
  ABBREVIATIONS.has(t) || /^(?:[A-Za-z]\.)+$/.test(t) || /^[A-Z][bcdfghjklmnpqrstvwxz|]+\.$/.test(t);

function splitMarks(t, tokens) {
  let begin = 0;
  while (begin < t.length && MARKS.has(t[begin])) tokens.push(t[begin++]);
  t = t.slice(begin);
  const tail = [];
  while (t !== "" && (MARKS.has(t.at(-1)) || t.at(-1) === ".")) {
    if (MARKS.has(t.at(-1))) {
      tail.push(t.at(-1));
      t = t.slice(0, -1);
    }
    if (t.endsWith("...")) {
      tail.push("...");
      while (t.endsWith(".")) t = t.slice(0, -1);
    }
    if (t.endsWith(".")) {
      if (isAbbreviation(t)) break;
      tail.push(".");
      t = t.slice(0, -1);
    }
  }
  if (t !== "") tokens.push(t);
  while (tail.length > 0) tokens.push(tail.pop());
}

const words = (line) => line.split(" ").filter((word) => word !== "");
const joined = (sentence) =>
  words(sentence.replace(IRONY, "(!)").replace(EMOTICON, (found) => found.replaceAll(" ", "")));

function tokensOf(text) {
  const tokens = [];
  for (const word of words(normalized(text))) splitMarks(word, tokens);
  const all = [];
  let sentence = [];
  for (let i = 0; i < tokens.length;) {
    if (!ENDS.has(tokens[i])) {
      sentence.push(tokens[i++]);
      continue;
    }
    for (; i < tokens.length && CLOSES.has(tokens[i]); ++i) {
      if (tokens[i] !== END_OF_PARAGRAPH) sentence.push(tokens[i]);
    }
    all.push(...joined(sentence.join(" ")));
    sentence = [];
  }
  all.push(...joined(sentence.join(" ")));
  return all;
}

const clamp = (value) => Math.max(-1, Math.min(value, 1));
const length = (text) => [...text].length;

// { polarity, subjectivity } of a text.
export function sentimentOf(text) {
  const assessments = [];
  let adverb = null; // the word before, when it scales the next; its assessment is the last one
  let negation = false; // one that waits for a known word
  for (const cased of tokensOf(text)) {
    const token = cased.toLowerCase();
    const word = LEXICON.get(token);
    if (word !== undefined) {
      if (adverb === null) {
        assessments.push({ polarity: word.polarity, subjectivity: word.subjectivity, intensity: word.intensity, negated: false });
      } else {
        const last = assessments.at(-1);
        last.polarity = clamp(word.polarity * last.intensity);
        last.subjectivity = clamp(word.subjectivity * last.intensity);
        last.intensity = word.intensity;
      }
      if (negation) {
        const last = assessments.at(-1);
        last.intensity = 1 / last.intensity;
        last.negated = true;
      }
      adverb = word.adverb ? word : null;
      negation = NEGATIONS.has(word.text);
      continue;
    }
    if (NEGATIONS.has(token)) {
      negation = true;
    } else if (negation && length(token.replace(/^'+|'+$/g, "")) > 1) {
      negation = false;
    }
    if (negation && adverb !== null && adverb.text.endsWith("ly")) {
      assessments.at(-1).negated = true;
      negation = false;
    } else if (adverb !== null && length(token) > 2) {
      adverb = null;
    }
    if (token === "!" && assessments.length > 0) assessments.at(-1).polarity = clamp(assessments.at(-1).polarity * 1.25);
    if (token === "(!)") assessments.push({ polarity: 0, subjectivity: 1, intensity: 1, negated: false });
    const polarity = POLARITIES.get(token);
    if (polarity !== undefined) assessments.push({ polarity, subjectivity: 1, intensity: 1, negated: false });
  }
  let polarity = 0;
  let subjectivity = 0;
  for (const a of assessments) {
    polarity += a.negated ? a.polarity * -0.5 : a.polarity;
    subjectivity += a.subjectivity;
  }
  const count = Math.max(1, assessments.length);
  return { polarity: polarity / count, subjectivity: subjectivity / count };
}

// What the function answers, as text; null: the body is not UTF-8.
export function answerTo(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
  const { polarity, subjectivity } = sentimentOf(text);
  const shown = (number) => (Number.isInteger(number) ? number.toFixed(1) : String(number));
  return `{"polarity": ${shown(polarity)}, "subjectivity": ${shown(subjectivity)}}\n`;
}
