/** The one check that every named database and collection passes, wherever it is named. */

import { isDocument, readOptions, typeName } from './document.js';
import { at, badArgument, quote, refused, rootPlace, type Place } from './place.js';
import { liftedBy, type Namespace, type PolicySettings } from './settings.js';

/** What the server's own databases hold, as a reason to refuse them. */
const ownDatabases: ReadonlyMap<string, string> = new Map([
  ['admin', 'it holds the users and roles'],
  ['local', 'it holds the oplog, which repeats the writes of all databases'],
  ['config', "it holds the cluster's metadata and other users' sessions"],
]);

/**
 * Checks a namespace that a call names. Where `path` is the argument `collection`, what is wrong with the database is
 * told of the argument `database` beside it.
 * @throws LeashError `bad_argument` for a name that no database or collection can have; `refused_by_policy`, unless
 *   `allowInternal`, for the server's own: `admin`, `local`, `config`, `system.*`, `enxcol_.*`
 */
export function checkNamespace(ns: Namespace, settings: PolicySettings, path: string): void {
  const place = rootPlace(path);
  checkNamespaceAt(ns, settings, place, path === 'collection' ? rootPlace('database') : place);
}

/** As {@link checkNamespace}, for a place within a pipeline. */
export function checkNamespaceAt({ db, coll }: Namespace, settings: PolicySettings, place: Place, placeOfDatabase = place): void {
  checkDatabaseName(db, placeOfDatabase);
  if (coll !== null) checkCollectionName(coll, place);
  if (coll !== null && Buffer.byteLength(`${db}.${coll}`) > 255) throw badArgument(place, `${quote(coll)} is no name of a collection: with its database it is longer than 255 bytes`);
  if (settings.allowInternal) return;
  const next = `Name another one, or ask the operator of this server to start it with ${liftedBy.allowInternal}.`;
  // Names of databases are unique without regard to case, so "Admin" can be no database of a user's.
  const reason = ownDatabases.get(db.toLowerCase());
  if (reason !== undefined) throw refused(placeOfDatabase, `the database ${quote(db)} is refused: ${reason}`, next);
  if (coll !== null && isOwnCollection(coll)) {
    throw refused(place, `the collection ${quote(coll)} is refused: it is one of the server's own`, next);
  }
}

/**
 * `system.*` (with the buckets of time series) and the state of encrypted collections. Only the beginning counts,
 * and its case, as in the server's `NamespaceString::isSystem`: "x.system.y" and "System.x" are users' collections.
 */
function isOwnCollection(coll: string): boolean {
  return coll.startsWith('system.') || coll.startsWith('enxcol_.');
}

/** The manual's "Naming Restrictions", those for Windows included: 63 bytes, and none of `/\. "$*<>:|?` or NUL. */
function checkDatabaseName(db: string, place: Place): void {
  if (db === '') throw badArgument(place, 'the name of a database must not be empty');
  const wrong = /[/\\. "$*<>:|?\0]/.exec(db);
  if (wrong) throw badArgument(place, `${quote(db)} is no name of a database: it contains ${quote(wrong[0])}`);
  if (Buffer.byteLength(db) > 63) {
    throw badArgument(place, `${quote(db)} is no name of a database: it is longer than 63 bytes`);
  }
}

/**
 * No collection can be created with a `$` in its name, but 6.0.5 takes `$cmd` and `a$b` where it reads: what it
 * makes of them is left untried. All else (spaces, quotes, dots within, any script) is legal.
 */
function checkCollectionName(coll: string, place: Place): void {
  if (coll === '') throw badArgument(place, 'the name of a collection must not be empty');
  const wrong = /[$\0]/.exec(coll);
  if (wrong) throw badArgument(place, `${quote(coll)} is no name of a collection: it contains ${quote(wrong[0])}`);
  if (coll.startsWith('.')) throw badArgument(place, `${quote(coll)} is no name of a collection: it begins with a dot`);
}

/**
 * Reads `"coll"` or `{db, coll}`, the two forms in which a stage names a collection.
 * @param db the database that a name without one belongs to
 * @throws LeashError `bad_argument` for any other form
 */
export function readNamespace(value: unknown, db: string, place: Place): Namespace {
  if (typeof value === 'string') return { db, coll: value };
  if (!isDocument(value)) {
    throw badArgument(place, `a collection is named by a string or by {db, coll}, not by ${typeName(value)}`);
  }
  const options = readOptions(value, place, ['db', 'coll']);
  return {
    db: options.has('db') ? readName(options.get('db'), at(place, 'db')) : db,
    coll: readName(options.get('coll'), at(place, 'coll')),
  };
}

/** @throws LeashError `bad_argument` when the name is missing or no string (a BSON symbol is none) */
export function readName(value: unknown, place: Place): string {
  if (typeof value !== 'string') throw badArgument(place, `a name must be a string, not ${typeName(value)}`);
  return value;
}
