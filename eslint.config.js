/** The house rules that a machine can check: types used well, no lost promise, and a stdout that belongs to JSON-RPC. */
import { defineConfig, globalIgnores } from 'eslint/config';
import tseslint from 'typescript-eslint';

const noEnum = {
  selector: 'TSEnumDeclaration',
  message: 'Use an `as const` object and a type of its values.',
};
const noDefaultExport = {
  selector: 'ExportDefaultDeclaration',
  message: 'Export by name.',
};

export default defineConfig(
  globalIgnores(['dist/', 'coverage/']),
  {
    files: ['**/*.ts', '**/*.mts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { project: './tsconfig.check.json', tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // A port is asynchronous for all its adapters, and one that keeps its data in memory has nothing to await.
      '@typescript-eslint/require-await': 'off',
      // Objects here are closures, not classes: their functions do not read `this`.
      '@typescript-eslint/unbound-method': 'off',
      eqeqeq: 'error',
      'no-restricted-syntax': ['error', noEnum],
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      'no-console': 'error',
      'no-restricted-syntax': ['error', noEnum, noDefaultExport],
    },
  },
  {
    // The command line's stdout is its answer to a person or a script.
    files: ['src/cli/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    // Documents and JSON answers are `any` until a test has looked at them, and looking is what tests do.
    files: ['test/**/*.ts'],
    rules: {
      '@typescript-eslint/no-explicit-any': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
    },
  },
  {
    files: ['**/*.js', '**/*.mjs'],
    extends: [tseslint.configs.recommended],
    rules: {
      eqeqeq: 'error',
      'no-console': 'error',
      'no-undef': 'error',
    },
    languageOptions: { globals: { AbortController: 'readonly', URL: 'readonly', performance: 'readonly', clearTimeout: 'readonly', setTimeout: 'readonly' } },
  },
);
