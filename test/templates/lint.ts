/**
 * Checks the templates of a plain cell and of one with every option by cfn-lint and checkov: `npm run lint:templates`. Each finding
 * is either fixed or acknowledged below with its reason; an acknowledgement without a finding is an error, too.
 *
 * Both programs are installed once, from PyPI, beside the cache of the other tests.
 */
import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EVERY_OPTION, synthesize } from '../support/cells.ts';

const PROGRAMS = ['cfn-lint==1.58.0', 'checkov==3.3.30'];

/** Rules with findings that are accepted: the resources, by type and logical id, and the reason. */
const ACKNOWLEDGED: readonly (readonly [rule: string, resources: RegExp, reason: string])[] = [
  ['W3005', /./, 'The CDK names dependencies that references imply.'],
  ['CKV_AWS_18', /Bucket\.Dashboard/, 'Only the distribution reads the bucket, and its files are public.'],
  ['CKV_AWS_21', /Bucket\.Dashboard/, 'The files are built from the source at each deployment.'],
  ['CKV_AWS_26', /Topic\./, 'Encryption with a KMS key is the option `customerKey`.'],
  [
    'CKV_AWS_27',
    /Queue\./,
    'Queues are encrypted with keys of SQS; with a KMS key by the option `customerKey`.',
  ],
  ['CKV_AWS_59', /Method\./, 'The app verifies the API key of each request.'],
  [
    'CKV_AWS_68',
    /Distribution\./,
    'A web ACL is the option `api.waf`, and protects the API behind the distribution.',
  ],
  [
    'CKV_AWS_73',
    /Stage\./,
    'Log lines have the request id; the option `tracing` traces polls and deliveries.',
  ],
  ['CKV_AWS_86', /Distribution\./, 'Its log would contain addresses of viewers; the API has an access log.'],
  [
    'CKV_AWS_111',
    /Policy\.EgressAttach/,
    'The permissions to attach a function to a subnet cannot be limited to a resource.',
  ],
  [
    'CKV_AWS_115',
    /Function\./,
    'AWS refuses reserved concurrency while the limit is low; event sources and slots limit it.',
  ],
  [
    'CKV_AWS_116',
    /Function\./,
    'Event sources have dead-letter queues; the tick is repeated each minute; others are synchronous.',
  ],
  [
    'CKV_AWS_117',
    /Function\./,
    'Functions need no network of their own; static addresses are the option `staticEgress`.',
  ],
  ['CKV_AWS_120', /Stage\./, 'Responses depend on the key and must be current.'],
  [
    'CKV_AWS_158',
    /LogGroup\./,
    'Log groups are encrypted with keys of AWS; with a KMS key by the option `customerKey`.',
  ],
  ['CKV_AWS_165', /GlobalTable\.History/, 'No decision depends on the history, and it expires.'],
  ['CKV_AWS_173', /Function\./, 'Environments contain no secrets.'],
  [
    'CKV_AWS_174',
    /Distribution\./,
    'The certificate of CloudFront sets the TLS version; with a host name it is 1.2.',
  ],
];

const folder = mkdtempSync(join(tmpdir(), 'jobwire-templates-'));
try {
  const stage = { tracing: { samplePercent: 5 }, canary: { minutes: 10 } } as const;
  const files = [synthesize('prod'), synthesize('prod', { stage, cell: EVERY_OPTION })].map(
    ({ template }, at) => {
      const file = join(folder, `${at}.template.json`);
      writeFileSync(file, JSON.stringify(template.toJSON()));
      return file;
    },
  );
  const bin = install();
  const findings = (await Promise.all([lint(bin, files), check(bin, files)])).flat();
  const isFor = ({ rule, resource }: Finding, [acknowledged, resources]: (typeof ACKNOWLEDGED)[number]) =>
    rule === acknowledged && resources.test(resource);
  const open = findings.filter((finding) => !ACKNOWLEDGED.some((one) => isFor(finding, one)));
  const unused = ACKNOWLEDGED.filter((one) => !findings.some((finding) => isFor(finding, one)));
  for (const { rule, resource, text } of open) console.error(`${rule} ${resource}: ${text}`);
  for (const [rule, resources] of unused)
    console.error(`${rule} ${resources}: there is no such finding. Remove the acknowledgement.`);
  console.log(`${findings.length} findings, ${open.length} of them not acknowledged.`);
  process.exitCode = open.length + unused.length > 0 ? 1 : 0;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

interface Finding {
  readonly rule: string;
  /** Type and logical id. */
  readonly resource: string;
  readonly text: string;
}

async function lint(bin: string, files: readonly string[]): Promise<Finding[]> {
  const output = await run(join(bin, 'cfn-lint'), ['--format', 'json', '--', ...files]);
  const results = JSON.parse(output || '[]') as {
    Rule: { Id: string };
    Message: string;
    Location: { Path?: readonly string[] };
  }[];
  return results.map(({ Rule, Message, Location }) => ({
    rule: Rule.Id,
    resource: String(Location.Path?.[1] ?? ''),
    text: Message,
  }));
}

async function check(bin: string, files: readonly string[]): Promise<Finding[]> {
  const output = await run(join(bin, 'checkov'), [
    ...files.flatMap((file) => ['--file', file]),
    ...['--framework', 'cloudformation', '--compact', '--quiet', '--skip-download', '--output', 'json'],
  ]);
  const { results, summary } = JSON.parse(output) as {
    results: { failed_checks: { check_id: string; check_name: string; resource: string }[] };
    summary: { parsing_errors: number };
  };
  if (summary.parsing_errors > 0) throw new Error('checkov cannot read a template.');
  return results.failed_checks.map(({ check_id: rule, check_name: text, resource }) => ({
    rule,
    resource,
    text,
  }));
}

/** Returns the output of a program, which ends with an error if it finds anything. */
async function run(program: string, parameters: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)(program, parameters, { maxBuffer: 64 * 1024 * 1024 })).stdout;
  } catch (cause) {
    const { stdout } = cause as { stdout?: string };
    if (stdout) return stdout;
    throw cause;
  }
}

/** Installs the programs, unless they are, and returns their folder. */
function install(): string {
  const cache = 'node_modules/.cache/jobwire';
  const home = join(cache, PROGRAMS.join('-').replaceAll('==', '-'));
  const bin = join(home, 'bin');
  if (!existsSync(join(home, 'complete'))) {
    mkdirSync(cache, { recursive: true });
    execFileSync('python3', ['-m', 'venv', '--clear', home]);
    const quiet = ['--quiet', '--no-compile', '--disable-pip-version-check'];
    execFileSync(join(bin, 'pip'), ['install', ...quiet, ...PROGRAMS], { stdio: 'inherit' });
    writeFileSync(join(home, 'complete'), '');
  }
  return bin;
}
