// Requests the same report with the usual clients of JavaScript programs.
//
// Reads the addresses of each trial from standard input, as JSON, and writes to standard output what
// each client returned or threw.

import assert from 'node:assert/strict';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, Output, streamObject } from 'ai';
import OpenAI from 'openai';
import { zodFunction, zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';

const model = 'gpt-4o';
const apiKey = 'sk-nobody';
const prompt = 'Write the report as JSON.';
const messages = [{ role: 'user', content: prompt }];
const jsonMode = { type: 'json_object' };

const cell = z.union([z.string(), z.number(), z.boolean()]);
const section = z.object({
  id: z.string(),
  rows: z.array(z.array(cell).nullable()),
  note: z.string(),
});
const report = z.object({ title: z.string(), sections: z.array(section) });

// The official client, with a time limit.
const client = (baseURL) => new OpenAI({ baseURL, apiKey, timeout: 60_000 });
const completions = (base) => client(base).chat.completions;

// The AI SDK, with the provider for OpenAI and the one for those who speak as it does.
const aiModel = (baseURL) => createOpenAI({ baseURL, apiKey }).chat(model);
const aiResponses = (baseURL) => createOpenAI({ baseURL, apiKey }).responses(model);
const compatibleModel = (baseURL) =>
  createOpenAICompatible({ baseURL, apiKey, name: 'overlock' }).chatModel(model);

const trials = {
  'openai create': async (base) => {
    const completion = await completions(base).create({
      model,
      messages,
      response_format: jsonMode,
    });
    const [choice] = completion.choices;
    JSON.parse(choice.message.content);
    assert.equal(choice.finish_reason, 'stop');
    return choice.message.content;
  },

  'openai stream': async (base) => {
    const stream = await completions(base).create({
      model,
      messages,
      response_format: jsonMode,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    const choices = chunks.flatMap((chunk) => chunk.choices);
    const content = choices.map((choice) => choice.delta.content ?? '').join('');
    JSON.parse(content);
    const finishes = choices.map((choice) => choice.finish_reason).filter(Boolean);
    assert.deepEqual(finishes, ['stop']);
    assert.equal(chunks.filter((chunk) => chunk.usage).length, 1);
    return content;
  },

  'openai parse': async (base) => {
    const response_format = zodResponseFormat(report, 'report');
    const completion = await completions(base).parse({ model, messages, response_format });
    return completion.choices[0].message.parsed;
  },

  'openai stream and parse': async (base) => {
    const response_format = zodResponseFormat(report, 'report');
    const stream = completions(base).stream({ model, messages, response_format });
    const completion = await stream.finalChatCompletion();
    return completion.choices[0].message.parsed;
  },

  'openai stream that breaks off': (base) => trials['openai stream'](base),

  'openai tool call, parse': async (base) => {
    const completion = await completions(base).parse({
      model,
      messages,
      tools: [zodFunction({ name: 'report', parameters: report })],
      tool_choice: { type: 'function', function: { name: 'report' } },
    });
    return completion.choices[0].message.tool_calls[0].function.parsed_arguments;
  },

  'responses create': async (base) => {
    const response = await client(base).responses.create({
      model,
      input: prompt,
      text: { format: jsonMode },
    });
    assert.equal(response.status, 'completed');
    return response.output_text;
  },

  'responses parse': async (base) => {
    const format = zodTextFormat(report, 'report');
    const { output_parsed } = await client(base).responses.parse({
      model,
      input: prompt,
      text: { format },
    });
    return output_parsed;
  },

  'responses stream and parse': async (base) => {
    const format = zodTextFormat(report, 'report');
    const stream = client(base).responses.stream({ model, input: prompt, text: { format } });
    const response = await stream.finalResponse();
    assert.equal(response.status, 'completed');
    return response.output_parsed;
  },

  'responses, ai generateObject': async (base) => {
    const { object } = await generateObject({ model: aiResponses(base), schema: report, prompt });
    return object;
  },

  'responses, ai streamObject': (base) => streamed(aiResponses(base)),

  'ai generateObject': async (base) => {
    const { object } = await generateObject({ model: aiModel(base), schema: report, prompt });
    return object;
  },

  'ai streamObject': (base) => streamed(aiModel(base)),

  'ai generateText with an object': async (base) => {
    const output = Output.object({ schema: report });
    return (await generateText({ model: aiModel(base), output, prompt })).output;
  },

  'ai (compatible) generateObject': async (base) => {
    const { object } = await generateObject({
      model: compatibleModel(base),
      schema: report,
      prompt,
    });
    return object;
  },

  'ai (compatible) streamObject': (base) => streamed(compatibleModel(base)),
};

const refusals = {
  'stays cut': (base) => trials['openai parse'](base),

  'tool call stays cut': (base) => trials['openai tool call, parse'](base),

  'too long for the model': (base) =>
    completions(base).create({
      model: 'gpt-4',
      messages: [{ role: 'user', content: 'word '.repeat(9000) }],
    }),

  'too many requests': (base) =>
    completions(base).create({ model, messages, stream: true }, { maxRetries: 0 }),
};

async function streamed(model) {
  // What goes wrong is thrown by the object; without this it would be printed as well.
  const onError = () => {};
  const { object, partialObjectStream, finishReason } = streamObject({
    model,
    schema: report,
    prompt,
    onError,
  });
  // A rejection must be handled even if the object is not awaited.
  object.catch(() => {});
  for await (const _ of partialObjectStream);
  const whole = await object;
  assert.equal(await finishReason, 'stop');
  return whole;
}

async function outcome(trial, base) {
  try {
    return { got: await trial(base) };
  } catch (error) {
    const code = typeof error.code === 'string' ? error.code : null;
    const name = error.constructor.name;
    return { error: name, code, message: String(error.message).slice(0, 500) };
  }
}

const asked = JSON.parse(await new Response(process.stdin).text());
assert.deepEqual(Object.keys(asked.trials).sort(), Object.keys(trials).sort());
assert.deepEqual(Object.keys(asked.refusals).sort(), Object.keys(refusals).sort());
const told = { trials: {}, refusals: {} };
for (const [name, { direct, gateway }] of Object.entries(asked.trials)) {
  told.trials[name] = {
    direct: await outcome(trials[name], direct),
    gateway: await outcome(trials[name], gateway),
  };
}
for (const [name, base] of Object.entries(asked.refusals)) {
  told.refusals[name] = await outcome(refusals[name], base);
}
process.stdout.write(JSON.stringify(told));
