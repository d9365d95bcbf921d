/** Tools that the conformance suite calls by name, written as real tools are: each says in one call what the suite wants to see. */

import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';

const hints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
const none = z.strictObject({});

/** A white pixel, and a WAV file without samples. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+ip1sAAAAASUVORK5CYII=';
const wav = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';
const image = { type: 'image', data: png, mimeType: 'image/png' };
const text = (words) => ({ type: 'text', text: words });
const resource = (uri, mimeType, words) => ({ type: 'resource', resource: { uri, mimeType, text: words } });

/** What every fixture says of itself; the rest is its own. */
export const fixture = (name, rest) => ({ name, title: name, description: `Fixture of the conformance suite: ${name}`, input: none, scope: 'leash:read', annotations: hints, ...rest });
export const answer = (...content) => ({ isError: false, body: {}, content });

const says = (name, ...content) => fixture(name, { call: async () => answer(...content) });

/** Asks the client, and is called again with what it answered; asks once more for what is missing. */
const asks = (name, inputRequests, requestState) =>
  fixture(name, {
    async call(_args, _notes, { inputResponses = {} }) {
      if (Object.keys(inputRequests).some((key) => inputResponses[key] === undefined)) return { ...answer(), ask: { inputRequests, requestState } };
      return answer(text(Object.keys(inputRequests).map((key) => `${key}: ${JSON.stringify(inputResponses[key])}`).join('; ')));
    },
  });

export const elicit = (message, property, type = 'string') => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: { [property]: { type } }, required: [property] } },
});
const sample = (question) => ({ method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: text(question) }], maxTokens: 100 } });
const listRoots = { method: 'roots/list', params: {} };

const greet = fixture('greet', {
  input: z.strictObject({ name: z.string() }),
  call: async ({ name }) => answer(text(`Hello, ${name}!`)),
});

const withProgress = fixture('test_tool_with_progress', {
  async call(_args, _notes, { progress }) {
    for (const done of [0, 50, 100]) {
      progress?.(`${done} of 100`, done);
      await delay(50);
    }
    return answer(text('done'));
  },
});

const withError = fixture('test_error_handling', {
  call: async () => ({ ...answer(text('This tool intentionally returns an error for testing')), isError: true }),
});

/** Whether what a schema says beyond the common keywords reaches the client. */
const withSchema = fixture('json_schema_2020_12_tool', {
  input: z
    .strictObject({
      name: z.string().optional(),
      address: z.unknown().meta({ $ref: '#/$defs/address' }).optional(),
      contactMethod: z.enum(['phone', 'email']).optional(),
      phone: z.string().optional(),
      email: z.string().optional(),
    })
    .meta({
      $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
    }),
  call: async () => answer(text('ok')),
});

export const fixtureTools = [
  greet,
  withProgress,
  withError,
  withSchema,
  says('test_simple_text', text('This is a simple text response for testing.')),
  says('test_image_content', image),
  says('test_audio_content', { type: 'audio', data: wav, mimeType: 'audio/wav' }),
  says('test_embedded_resource', resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')),
  says('test_multiple_content_types', text('Multiple content types test:'), image, resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}')),
  // This server has no log messages for clients, so there is nothing to send without a level.
  says('test_logging_tool', text('logged nothing')),
  says('test_reconnection', text('answered without a reconnection')),
  asks('test_missing_capability', { question: sample('Which capability is missing?') }),
  asks('test_streaming_elicitation', { user_name: elicit('What is your name?', 'name') }),
  asks('test_input_required_result_elicitation', { user_name: elicit('What is your name?', 'name') }),
  asks('test_input_required_result_sampling', { capital_question: sample('What is the capital of France?') }),
  asks('test_input_required_result_list_roots', { client_roots: listRoots }),
  asks('test_input_required_result_multiple_inputs', { user_name: elicit('What is your name?', 'name'), greeting: sample('Generate a greeting'), client_roots: listRoots }, 'all three'),
];
