/** What becomes of a connection string: of one node, with the same user and options and what DNS had added to it; and of the time that it gives for a server. */

import { ConnectionString } from 'mongodb-connection-string-url';
import type { MongoClient } from 'mongodb';
import { describe, expect, test } from 'vitest';
import { createDataClient, directString, serverSelectionTimeoutMs } from '../../src/mongo/clients.js';

const client = (options: { tls?: boolean; credentials?: { source: string } }) => ({ options }) as unknown as MongoClient;
const of = (uri: string, options = {}) => directString(new ConnectionString(uri), 'b:2', client(options)).toString();

describe('the string of one node', () => {
  test('keeps the user, TLS and authentication, and leaves out what speaks of the whole set', () => {
    expect(of('mongodb://u:p%40@a:1,b:2/app?replicaSet=rs&readPreference=secondary&maxStalenessSeconds=90&tls=true&tlsCAFile=ca.pem&authSource=admin')).toBe(
      'mongodb://u:p%40@b:2/app?tls=true&tlsCAFile=ca.pem&authSource=admin&directConnection=true',
    );
  });

  test('takes TLS and authSource of a mongodb+srv:// string from what DNS said', () => {
    const dns = { tls: true, credentials: { source: 'admin' } };
    expect(of('mongodb+srv://u:p@cluster.example.net/', dns)).toBe('mongodb://u:p@b:2/?tls=true&authSource=admin&directConnection=true');
    expect(of('mongodb+srv://u:p@cluster.example.net/?tls=false&authSource=app', dns)).toBe('mongodb://u:p@b:2/?tls=false&authSource=app&directConnection=true');
  });

  test('takes nothing from it for a string without DNS', () => {
    expect(of('mongodb://u:p@a:1/', { tls: true, credentials: { source: 'app' } })).toBe('mongodb://u:p@b:2/?directConnection=true');
  });
});

test.each([
  ['mongodb://a:1/', serverSelectionTimeoutMs],
  ['mongodb://a:1/?serverSelectionTimeoutMS=300', 300],
  ['mongodb://a:1/?serverSelectionTimeoutMS=600000', serverSelectionTimeoutMs],
])('the choice of a server by %s may take %i ms', (uri, ms) => {
  const data = createDataClient({ connectionString: new ConnectionString(uri), instance: 'i', maxOperations: 1 });
  expect(data.options.serverSelectionTimeoutMS).toBe(ms);
});
