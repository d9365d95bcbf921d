/** Finds out from documents which fields they have: how often each, of which types, and what is inside of objects and arrays. */

import { BSON, type Document } from 'bson';

/** The values that were seen in one place: of a field, or of the elements of an array. */
interface Values {
  count: number;
  types: Map<string, Type>;
}

interface Type {
  count: number;
  /** Of a Document. */
  fields: Fields | null;
  /** Of an Array. */
  elements: Values | null;
}

interface Fields {
  /** Objects that were seen. */
  count: number;
  byName: Map<string, Values>;
  /** Whether there were further names, which are not counted. */
  hasMore: boolean;
}

export interface TypeView {
  bsonType: string;
  /** Of the values in this place, from 0 to 1. */
  share: number;
  fields?: Record<string, FieldView>;
  /** How many fields there are, where they are not shown. */
  fieldsCount?: number;
  /** Of an array's elements. */
  types?: TypeView[];
}

export interface FieldView {
  types: TypeView[];
  /** Of the documents, or of the objects around it, that have the field. */
  share: number;
  optional?: true;
  /** More than one type, Null not counted. */
  mixed?: true;
}

export interface SchemaAnalysis {
  add(document: Uint8Array): void;
  /** Documents that were added. */
  count(): number;
  /** @param depth levels of nested fields that are shown */
  view(depth: number): Record<string, FieldView>;
  fieldsCount(): number;
  /** Whether a place had more names than are kept: names that are data, most likely. */
  hasTooManyNames(): boolean;
}

/** Names that one object, and all together, are followed by. */
const maxNames = 1_000;
const maxNamesInAll = 20_000;

export function createSchemaAnalysis(): SchemaAnalysis {
  const root = noFields();
  let names = 0;
  let overflown = false;

  function addObject(fields: Fields, object: Document): void {
    fields.count += 1;
    for (const [name, value] of Object.entries(object)) {
      let values = fields.byName.get(name);
      if (values === undefined) {
        if (fields.byName.size >= maxNames || names >= maxNamesInAll) {
          fields.hasMore = true;
          overflown = true;
          continue;
        }
        names += 1;
        values = { count: 0, types: new Map() };
        fields.byName.set(name, values);
      }
      addValue(values, value);
    }
  }

  function addValue(values: Values, value: unknown): void {
    const name = typeName(value);
    const type = values.types.get(name) ?? { count: 0, fields: null, elements: null };
    values.types.set(name, type);
    values.count += 1;
    type.count += 1;
    if (Array.isArray(value)) {
      type.elements ??= { count: 0, types: new Map() };
      for (const element of value) addValue(type.elements, element);
    } else if (name === 'Document') {
      type.fields ??= noFields();
      addObject(type.fields, value as Document);
    }
  }

  return {
    add: (document) => {
      // Classes instead of plain values: an integer and a double are told apart.
      addObject(root, BSON.deserialize(document, { promoteValues: false, promoteLongs: false, promoteBuffers: false, bsonRegExp: true, validation: { utf8: false } }));
    },
    count: () => root.count,
    view: (depth) => fieldsView(root, depth),
    fieldsCount: () => root.byName.size,
    hasTooManyNames: () => overflown,
  };
}

function noFields(): Fields {
  return { count: 0, byName: new Map(), hasMore: false };
}

function fieldsView({ byName, count }: Fields, depth: number): Record<string, FieldView> {
  return Object.fromEntries([...byName].map(([name, values]): [string, FieldView] => {
    const kinds = [...values.types.keys()].filter((type) => type !== 'Null');
    return [name, {
      types: typesView(values, depth),
      share: shareOf(values.count, count),
      ...(values.count < count ? { optional: true } : {}),
      ...(kinds.length > 1 ? { mixed: true } : {}),
    }];
  }));
}

function typesView({ types, count }: Values, depth: number): TypeView[] {
  const byCount = [...types].sort(([, a], [, b]) => b.count - a.count);
  return byCount.map(([bsonType, { count: seen, fields, elements }]) => ({
    bsonType,
    share: shareOf(seen, count),
    ...(fields === null ? {} : depth > 1 ? { fields: fieldsView(fields, depth - 1) } : { fieldsCount: fields.byName.size }),
    ...(elements === null ? {} : { types: typesView(elements, depth) }),
  }));
}

/** With four digits, and 0 and 1 only where it is exactly that. */
function shareOf(part: number, whole: number): number {
  if (part === whole) return 1;
  return Math.min(0.9999, Math.max(0.0001, Math.round((part / whole) * 10_000) / 10_000));
}

const namesOfClasses: Readonly<Record<string, string>> = { BSONRegExp: 'RegExp', BSONSymbol: 'Symbol' };

function typeName(value: unknown): string {
  if (value === null) return 'Null';
  if (Array.isArray(value)) return 'Array';
  if (value instanceof Date) return 'Date';
  if (typeof value !== 'object') return value === undefined ? 'Undefined' : typeof value === 'string' ? 'String' : 'Boolean';
  // A field of a document can have the same name: only a class has it from its prototype.
  const kind = Object.hasOwn(value, '_bsontype') ? undefined : (value as { _bsontype?: unknown })._bsontype;
  if (kind === 'Code' && (value as { scope?: unknown }).scope) return 'CodeWScope';
  return typeof kind === 'string' ? (namesOfClasses[kind] ?? kind) : 'Document';
}
