/** Every case from the field stands in the title of a test, and those that the read tools touch in one of theirs. */
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const tests = fileURLToPath(new URL('../', import.meta.url));
const cases = JSON.parse(readFileSync(new URL('../cases/reports.json', import.meta.url), 'utf8')) as { id: string }[];
const ids = cases.map(({ id }) => id);

/** Cases that no tool of its own touches: ids of operations are the engine's, and headers of requests the HTTP server's. */
const ofNoTool = ['D05', 'D25'];

/** The ids in the tests of these folders, as titles have them: `(D01)` or `(D01, D07)`. */
function namedIn(folders: string[]): Set<string> {
  const files = folders.flatMap((folder) => readdirSync(`${tests}${folder}`).filter((name) => name.endsWith('.test.ts')).map((name) => `${tests}${folder}/${name}`));
  const marks = files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(/\((D\d\d(?:, D\d\d)*)\)/g)].map(([, mark]) => mark ?? ''));
  return new Set(marks.flatMap((mark) => mark.split(', ')));
}

it('the cases are numbered without a gap', () => {
  expect(ids).toEqual(ids.map((_id, i) => `D${String(i + 1).padStart(2, '0')}`));
});

it('each is named by a test', () => {
  const folders = readdirSync(tests, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const named = namedIn(folders);
  expect(ids.filter((id) => !named.has(id))).toEqual([]);
});

it('each that the read tools touch is named by a test of theirs', () => {
  const named = namedIn(['reads', 'metadata', 'export', 'connections']);
  expect(ids.filter((id) => !named.has(id))).toEqual(ofNoTool);
});
