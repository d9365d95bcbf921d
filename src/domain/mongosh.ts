/** The lines that find and kill an operation by its tag with nothing but `mongosh`, for whoever has no program of ours. */

import { anyTagPattern } from './tag.js';

/** `mongosh` lines; to be run on the node named, or on every node when it is not known. */
export interface MongoshLines {
  find: string;
  kill: string;
}

/**
 * Lines for one operation, for the user that it runs as: that one needs no privilege. (`$currentOp` shows others'
 * operations only with `allUsers: true` and the privilege inprog.)
 */
export function mongoshLines(operationId: string): MongoshLines {
  const tag = `/${anyTagPattern}\\w+\\.${operationId}\\./`;
  const find =
    `db.getSiblingDB('admin').aggregate([{$currentOp: {idleCursors: true}}, ` +
    `{$match: {$or: [{'command.comment': ${tag}}, {'cursor.originatingCommand.comment': ${tag}}]}}])`;
  return {
    find,
    kill:
      `${find}.forEach(o => 'opid' in o ? db.killOp(o.opid) : ` +
      `db.getSiblingDB(o.ns.split('.')[0]).runCommand({killCursors: o.ns.slice(o.ns.indexOf('.') + 1), cursors: [o.cursor.cursorId]}))`,
  };
}
