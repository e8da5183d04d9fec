// node check.mjs CASES: says how many of the cases sentiment.mjs gives to 1e-9; ends with 1 when it is not all.
import { readFileSync } from "node:fs";
import { sentimentOf } from "./sentiment.mjs";

const cases = JSON.parse(readFileSync(process.argv[2], "utf8"));
const wrong = cases.filter(([text, polarity, subjectivity]) => {
  const got = sentimentOf(text);
  return !(Math.abs(got.polarity - polarity) <= 1e-9 && Math.abs(got.subjectivity - subjectivity) <= 1e-9);
});
console.log(`${cases.length - wrong.length} of ${cases.length}`);
if (wrong.length > 0) {
  console.error(JSON.stringify(wrong[0]), sentimentOf(wrong[0][0]));
  process.exit(1);
}
