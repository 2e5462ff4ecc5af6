#!/usr/bin/env node
// `npm create ringwire [FOLDER]`. Needs nothing but Node.
import { main } from '../src/main.mjs'

process.exitCode = await main({
  args: process.argv.slice(2),
  env: process.env,
  cwd: process.cwd(),
  input: process.stdin,
  output: process.stdout,
  err: (text) => process.stderr.write(text),
})
