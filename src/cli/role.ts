/** The role that lets a user see and kill everybody's operations, as the mongosh lines that create and grant it. */

export const roleName = 'mongoLeashControl';

/** Each privilege on the cluster, and what is not possible without it. */
export const privileges = {
  inprog: "see other users' operations",
  killop: "kill other users' operations",
  killAnyCursor: "kill other users' idle cursors",
  killAnySession: "kill other users' sessions",
  replSetGetConfig: 'find hidden members of the replica set',
} as const;

export type PrivilegeName = keyof typeof privileges;

const quote = (text: string) => `'${text.replace(/[\\']/g, '\\$&').replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)}'`;

/** Creates the role with all of its privileges: no other action is in it. */
export function createRoleLine(): string {
  const actions = Object.keys(privileges).map(quote).join(', ');
  return `db.getSiblingDB('admin').createRole({role: ${quote(roleName)}, privileges: [{resource: {cluster: true}, actions: [${actions}]}], roles: []})`;
}

/** @param user as `user@database` */
export function grantRoleLine(user: string): string {
  const at = user.lastIndexOf('@');
  return `db.getSiblingDB(${quote(user.slice(at + 1))}).grantRolesToUser(${quote(user.slice(0, at))}, [{role: ${quote(roleName)}, db: 'admin'}])`;
}
