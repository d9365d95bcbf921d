/** Stops an old Node with a clear message: imported first by each script, so it runs before anything that needs more. */
import process from 'node:process';

const minimum = { major: 20, minor: 19 };

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < minimum.major || (major === minimum.major && minor < minimum.minor)) {
  process.stderr.write(
    `mongo-leash needs Node ${minimum.major}.${minimum.minor} or later; this is Node ${process.versions.node}.\n` +
      'Install a newer one, and run the same command again.\n',
  );
  process.exit(1);
}
