#!/usr/bin/env node
/** The program `mongo-leash`. */

import { createRequire } from 'node:module';
import { createProgram } from './cli/program.js';

const { version } = createRequire(import.meta.url)('../package.json') as { version: string };

await createProgram(version).parseAsync();
