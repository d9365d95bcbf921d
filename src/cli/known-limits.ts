/** What is known not to work on some services and versions, whatever the user's privileges; told by `doctor`. */

export interface Place {
  /** Hosts of the connection string and of the nodes, with or without port. */
  hosts: readonly string[];
  versions: readonly string[];
  roles: readonly string[];
}

const services: { name: string; host: RegExp; limits: readonly string[] }[] = [
  {
    name: 'MongoDB Atlas',
    host: /\.mongodb\.net(:\d+)?$/i,
    limits: [
      'killOp is allowed only to the user who runs the operation, whatever the role: kill as the user of the agent (its MONGO_LEASH_URI), not as another administrator.',
      'Custom roles are made in Atlas (Database Access, Custom Roles), not with createRole.',
      'On M0 and Flex clusters there is no killSessions, no $function and no $where, and maxTimeMS is at most 300,000.',
    ],
  },
  {
    name: 'Amazon DocumentDB',
    host: /\.docdb(-elastic)?\.amazonaws\.com(:\d+)?$/i,
    limits: ['Only currentOp, killOp and killCursors are documented there: killSessions, and the proof by several looks, have not been tested on it.'],
  },
  {
    name: 'Azure Cosmos DB',
    host: /\.cosmos\.azure\.com(:\d+)?$/i,
    limits: ['Only currentOp, killOp and killCursors are documented there (vCore); there is no killSessions. It has not been tested.'],
  },
];

/** One sentence each; empty where nothing is known to be missing. */
export function knownLimits({ hosts, versions, roles }: Place): string[] {
  const found = services.filter(({ host }) => hosts.some((each) => host.test(each))).flatMap(({ name, limits }) => limits.map((limit) => `${name}: ${limit}`));
  if (roles.includes('mongos')) {
    found.push(
      'mongos: inprog is needed even to see own operations, and writes on the shards stop only by killSessions. Sharded clusters have not been tested.',
      'mongos: each mongos has its own operations; connect to the one that the agent is connected to, or name them all in the connection string.',
    );
  }
  for (const version of new Set(versions)) found.push(...limitsOfVersion(version));
  return found;
}

function limitsOfVersion(version: string): string[] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const limits: string[] = [];
  const before = (otherMajor: number, otherMinor = 0) => major < otherMajor || (major === otherMajor && minor < otherMinor);
  if (before(4, 4)) limits.push(`${version}: a server before 4.4 does not name its process (hello.topologyVersion), so a restart cannot be told from an end of the operation.`);
  if (before(6)) limits.push(`${version}: before 6.0 only finding by comment and killOp have been tried (on 5.0).`);
  if (before(8)) limits.push(`${version}: before 8.0 a single expression in one document (a nested $reduce, one regular expression on a huge string) cannot be interrupted by anybody.`);
  return limits;
}
