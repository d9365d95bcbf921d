/** The formats of an export: how a file begins, how each document stands in it, and how it ends. */

import { documentText } from './ejson-out-text.js';
import { type Csv, createCsv } from './export-csv.js';

export const exportFormats = ['jsonl', 'json', 'csv'] as const;
export type ExportFormat = (typeof exportFormats)[number];

export interface ExportForm {
  /** `jsonl`: a document a line; `json`: one array, a document a line; `csv`: a row a line. */
  format: ExportFormat;
  /** Canonical instead of relaxed Extended JSON. */
  canonical: boolean;
  /** Columns of a CSV, as paths with dots; the fields of the first documents when left out. */
  fields?: readonly string[] | undefined;
}

export const mediaTypes = { jsonl: 'application/jsonl', json: 'application/json', csv: 'text/csv' } as const satisfies Record<ExportFormat, string>;

export interface ExportText {
  /** @param first the first documents, as many as are known */
  begin(first: readonly Uint8Array[]): string;
  /** The next document. @throws LeashError `internal` when it is no BSON document */
  document(bson: Uint8Array): string;
  end(): string;
  /** What a reader of the file should know. */
  notes(): string[];
}

/** Bytes that `end` may take. */
export const endBytes = 2;
const maxNotes = 5;

export function createExportText(form: ExportForm): ExportText {
  return form.format === 'csv' ? csvText(form) : jsonText(form);
}

function jsonText({ format, canonical }: ExportForm): ExportText {
  const isArray = format === 'json';
  const notes: string[] = [];
  let noted = 0;
  let count = 0;
  const note = (problem: string) => {
    noted += 1;
    if (notes.length < maxNotes) notes.push(`Document ${count + 1}, ${problem}`);
  };
  return {
    begin: () => (isArray ? '[' : ''),
    document(bson) {
      const text = documentText(bson, { canonical }, note);
      count += 1;
      if (!isArray) return `${text}\n`;
      return count === 1 ? text : `,\n${text}`;
    },
    end: () => (isArray ? ']' : ''),
    notes: () => (noted > notes.length ? [...notes, `${noted - notes.length} more notes of this kind are left out.`] : notes),
  };
}

function csvText({ canonical, fields }: ExportForm): ExportText {
  let csv: Csv | null = null;
  return {
    begin(first) {
      csv = createCsv(fields, first, canonical);
      return csv.header();
    },
    document: (bson) => csv?.row(bson) ?? '',
    end: () => '',
    notes() {
      const { names, documents } = csv?.left() ?? { names: [], documents: 0 };
      if (documents === 0) return [];
      return [`The columns are the fields of the first documents; ${documents} later ones have fields without a column, such as ${names.join(', ')}: name the columns with fields.`];
    },
  };
}
