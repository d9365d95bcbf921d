import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeId, idLengths, isOperationId } from '../../src/domain/ids.js';
import { mongoshLines } from '../../src/domain/mongosh.js';
import { type Tag, anyTagPattern, encodeRequestId, formatTag, parseTag, principalHash } from '../../src/domain/tag.js';

const id = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => encodeId(bytes, length));
const requestId = fc.oneof(fc.integer(), fc.string({ unit: 'binary' }), fc.string());
const tags: fc.Arbitrary<Tag> = fc.record({
  instance: id(idLengths.instance),
  operationId: id(idLengths.operation),
  principal: fc.string().map(principalHash),
  session: id(idLengths.session),
  kind: fc.constantFrom('r' as const, 'w' as const),
  request: requestId.map(encodeRequestId),
  own: fc.oneof(fc.constant(''), fc.string(), fc.string({ unit: 'binary', maxLength: 200 })),
});

describe('a tag', () => {
  it('gives back everything but a cut of the own comment', () => {
    fc.assert(fc.property(tags, (tag) => {
      const read = parseTag(formatTag(tag));
      expect(read).toMatchObject({ ...tag, own: expect.any(String) });
      expect([...(read?.own ?? '')].length).toBeLessThanOrEqual(64);
    }));
  });
  it('is one line of well-formed text that begins like every tag of ours', () => {
    fc.assert(fc.property(tags, (tag) => {
      const text = formatTag(tag);
      expect(text).toMatch(new RegExp(anyTagPattern));
      expect(text.isWellFormed()).toBe(true);
      expect(text).not.toMatch(/[\u0000-\u001f]/);
    }));
  });
  it('has a head of one length, whatever the operation', () => {
    fc.assert(fc.property(tags, tags, (a, b) => {
      const head = (tag: Tag) => formatTag(tag).indexOf(`.${tag.kind}.`, 60);
      expect(head(a)).toBe(head(b));
    }));
  });
  it('cannot be forged by a caller: an own comment never changes whose operation it is', () => {
    fc.assert(fc.property(tags, tags, (tag, other) => {
      expect(parseTag(formatTag({ ...tag, own: formatTag(other) }))).toMatchObject({ operationId: tag.operationId, principal: tag.principal });
      const asRequest = parseTag(formatTag({ ...tag, request: encodeRequestId(formatTag(other)), own: '' }));
      expect(asRequest).toMatchObject({ operationId: tag.operationId, principal: tag.principal });
    }));
  });
  it.each([undefined, null, 5, {}, '', 'mongo-leash', 'mongo-leash.1.short', ' mongo-leash.1.', 'mongo-leash.2.0123456789.'])('is not read from %j', (comment) => {
    expect(parseTag(comment)).toBeNull();
  });
});

describe('a request id in a tag', () => {
  it('keeps its type: 1 and "1" differ', () => {
    expect(encodeRequestId(1)).toBe('n:1');
    expect(encodeRequestId('1')).toBe('s:1');
    expect(encodeRequestId(0)).toBe('n:0');
  });
  it('takes at most 32 bytes and its type, and long ones still differ', () => {
    fc.assert(fc.property(requestId, (value) => { expect(encodeRequestId(value).length).toBeLessThanOrEqual(34); }));
    expect(encodeRequestId(`${'x'.repeat(100)}1`)).not.toBe(encodeRequestId(`${'x'.repeat(100)}2`));
  });
});

describe('an operation id', () => {
  it('is 26 characters that need no quoting anywhere', () => {
    const made = encodeId(new Uint8Array(26).fill(255), 26);
    expect(made).toMatch(/^[0-9a-z]{26}$/);
    expect(isOperationId(made)).toBe(true);
  });
  it.each(['', 'x', 'A'.repeat(26), `${'0'.repeat(25)}.`, `${'0'.repeat(26)}\n`, 'il'.repeat(13)])('is not %j', (text) => {
    expect(isOperationId(text)).toBe(false);
  });
});

it('the mongosh lines match the tag of their operation and of no other', () => {
  fc.assert(fc.property(tags, tags, (tag, other) => {
    fc.pre(tag.operationId !== other.operationId);
    const [, source = ''] = /'command\.comment': \/(.*?)\/}/.exec(mongoshLines(tag.operationId).find) ?? [];
    expect(formatTag(tag)).toMatch(new RegExp(source));
    expect(formatTag({ ...other, own: formatTag(tag) })).not.toMatch(new RegExp(source));
  }));
});
