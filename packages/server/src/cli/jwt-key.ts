/** `ringwire jwt-key`: a private key that signs session tokens [KEY1]. */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { makeSigningKey, type SigningAlgorithm, signingAlgorithms } from '../config/signing-key.ts'
import { CommandFailure, exitCodes, printJson, type Surroundings, visible } from './command.ts'

interface JwtKeyOptions {
  alg: SigningAlgorithm
  json?: boolean
}

export function addJwtKeyCommand(program: Command, surroundings: Surroundings): void {
  program
    .command('jwt-key <file>')
    .description('Make a private key that signs session tokens, in a new file that only its owner may read.')
    .addOption(new Option('--alg <algorithm>', 'what it signs with').choices(signingAlgorithms).default('EdDSA'))
    .option('--json', 'print JSON instead of text')
    .action((file: string, options: JwtKeyOptions) => make(surroundings, resolve(file), options))
}

function make(surroundings: Surroundings, file: string, { alg, json }: JwtKeyOptions): void {
  const kid = `k${randomBytes(4).toString('hex')}`
  try {
    writeFileSync(file, makeSigningKey(alg), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new CommandFailure(exitCodes.failed, visible(`${file} was not written (${reason}).`))
  }
  if (json) {
    printJson(surroundings, { kid, alg, file })
    return
  }
  surroundings.out(`${kid}:file:${file}\n`)
  surroundings.err(
    'Add it to RINGWIRE_JWT_SECRETS after the keys that are there: every node has to know it before it signs.\n',
  )
}
