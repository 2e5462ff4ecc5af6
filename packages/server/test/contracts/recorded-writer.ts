import '../../src/stores/sqlite/write-worker.ts'
import { recordStatements } from '../support/prepared-statements.ts'

/* The real writer thread. It appends its statements to the file that the environment variable STATEMENTS names. */

recordStatements(Bun.env.STATEMENTS ?? '')
